#include "launcher/job/log_mux.h"

#include <fmt/format.h>

namespace dstrain::launcher {
namespace {

constexpr std::size_t tail_lines_max = 10;
constexpr std::size_t tail_line_bytes_max = 400;

std::size_t index_of(OutputStream stream) {
  return static_cast<std::size_t>(stream);
}

}  // namespace

LogMux::LogMux(int world_size, OutputSink& out, OutputSink& err, Prefixes prefixes)
    : out_(out), err_(err), prefixes_(prefixes), ranks_(static_cast<std::size_t>(world_size)) {}

void LogMux::line(int rank, OutputStream stream, std::string_view text) {
  RankState& state = ranks_.at(static_cast<std::size_t>(rank));
  if (!passes_on(stream)) {
    OutputSink& target = sink(stream);
    target.write(fmt::format("[rank {}]: ", rank));
    target.write(text);
    target.write("\n");
  }
  if (text.empty()) return;
  std::string& slot = state.tail.size() < tail_lines_max
                          ? state.tail.emplace_back()
                          : (state.tail.push_back(std::move(state.tail.front())),
                             state.tail.pop_front(), state.tail.back());
  slot.assign(text.substr(0, tail_line_bytes_max));
  if (text.size() > tail_line_bytes_max) slot += " ...";
}

void LogMux::output(int rank, OutputStream stream, std::string_view bytes) {
  if (passes_on(stream)) sink(stream).write(bytes);
  ranks_.at(static_cast<std::size_t>(rank))
      .splitters[index_of(stream)]
      .feed(bytes, [&](std::string_view text) { line(rank, stream, text); });
}

void LogMux::finish(int rank) {
  for (const OutputStream stream : {OutputStream::out, OutputStream::err}) {
    ranks_.at(static_cast<std::size_t>(rank))
        .splitters[index_of(stream)]
        .finish([&](std::string_view text) { line(rank, stream, text); });
  }
}

void LogMux::own_lines(std::string_view lines) {
  if (!err_.at_line_start()) err_.write("\n");
  err_.write(lines);
  if (!lines.ends_with('\n')) err_.write("\n");
}

std::vector<std::string> LogMux::last_lines(int rank) const {
  const auto& tail = ranks_.at(static_cast<std::size_t>(rank)).tail;
  return {tail.begin(), tail.end()};
}

}  // namespace dstrain::launcher
