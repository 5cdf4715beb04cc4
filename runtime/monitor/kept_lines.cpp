#include "runtime/monitor/kept_lines.h"

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/shared_place.h"

namespace dstrain::monitor {
namespace {

constexpr Bytes file_bytes_max = 16 * gibibyte;
constexpr std::size_t line_bytes_max = 1U << 20;
constexpr std::size_t piece_bytes = 64U << 10;

/// Returns the step of a line; nothing if it is not a line of metrics.
std::optional<std::int64_t> step_of(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) {
    return std::nullopt;
  }
  return json["step"].get<std::int64_t>();
}

/// Passes on the lines of an open file, and whether each ended in a newline. A line that is too
/// long is passed on empty, and so counts as unreadable.
void for_each_line(int fd,
                   const std::string& name,
                   FunctionRef<void(std::string_view line, bool ended)> take) {
  std::array<char, piece_bytes> piece{};
  std::string line;
  bool long_line = false;
  for (std::uint64_t at = 0;;) {
    const std::size_t got = read_fully_at(fd, at, std::as_writable_bytes(std::span(piece)), name);
    at += got;
    for (std::string_view rest(piece.data(), got); !rest.empty();) {
      const std::size_t end = rest.find('\n');
      const std::string_view part = rest.substr(0, end);
      long_line |= line.size() + part.size() > line_bytes_max;
      if (!long_line) line += part;
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
      if (end == std::string_view::npos) continue;
      take(long_line ? std::string_view() : line, true);
      line.clear();
      long_line = false;
    }
    if (got < piece.size()) break;
  }
  if (long_line || !line.empty()) take(long_line ? std::string_view() : line, false);
}

/// Writes a file that replaces the old one.
class Rewriter {
 public:
  explicit Rewriter(const std::filesystem::path& path) : path_(path), file_(make_temporary(path)) {}
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;
  Rewriter(Rewriter&&) = delete;
  Rewriter& operator=(Rewriter&&) = delete;
  /// Removes an unfinished file.
  ~Rewriter() {
    if (!finished_) ::unlink(file_.name.c_str());
  }
  void add(std::string_view line) {
    buffer_ += line;
    buffer_ += '\n';
    if (buffer_.size() >= piece_bytes) write_out();
  }
  void finish() {
    write_out();
    flush_file(file_.fd.get(), file_.name);
    if (::rename(file_.name.c_str(), path_.c_str()) != 0) {
      fail_errno(errno, "rename to " + path_.string());
    }
    finished_ = true;
  }

 private:
  void write_out() {
    write_fully(file_.fd.get(), std::as_bytes(std::span(buffer_)), file_.name);
    buffer_.clear();
  }

  const std::filesystem::path& path_;
  TemporaryFile file_;
  std::string buffer_;
  bool finished_ = false;
};

/// Which lines of a file are kept.
struct Verdict {
  KeptLines kept;
  bool whole = true;  ///< the file needs no change
};

/// Decides which lines stay. The last line may have been cut off when its writer died. Any other
/// line that is not an object with a step is dropped, and a line that counts them is added.
Verdict judge_lines(int fd,
                    const std::string& name,
                    std::int64_t last_step,
                    FunctionRef<void(std::string_view)> keep) {
  Verdict verdict;
  std::int64_t unreadable = 0;
  for_each_line(fd, name, [&](std::string_view line, bool ended) {
    const std::optional<std::int64_t> step = step_of(line);
    if (!step) ++unreadable;
    const bool stays = step && *step <= last_step;
    verdict.whole = verdict.whole && stays && ended;
    if (!stays) return;
    if (unreadable > 0) {
      const nlohmann::ordered_json gap{{"step", verdict.kept.step},
                                       {"unreadable_lines", unreadable}};
      keep(gap.dump());
      verdict.kept.unreadable += std::exchange(unreadable, 0);
    }
    keep(line);
    verdict.kept.step = *step;
  });
  return verdict;
}

}  // namespace

KeptLines keep_lines_until(const std::filesystem::path& path, std::int64_t last_step) {
  const UniqueFd fd = open_to_read(path);
  const Bytes bytes = regular_bytes(fd.get(), path.string());
  if (bytes > file_bytes_max) {
    fail(ErrorCode::input, "{}: {} is more than the {} allowed for such a file", path.string(),
         format_bytes(bytes), format_bytes(file_bytes_max));
  }
  const Verdict verdict =
      judge_lines(fd.get(), path.string(), last_step, [](std::string_view /*line*/) {});
  if (verdict.whole) return verdict.kept;
  Rewriter rewriter(path);
  judge_lines(fd.get(), path.string(), last_step,
              [&](std::string_view line) { rewriter.add(line); });
  rewriter.finish();
  return verdict.kept;
}

}  // namespace dstrain::monitor
