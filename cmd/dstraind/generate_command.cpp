#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cmd/dstraind/commands.h"
#include "cmd/generate_setup.h"
#include "cmd/output_lines.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/units.h"
#include "runtime/data/text_stream.h"
#include "runtime/engine/name_collective.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/text_session.h"

namespace dstrain::cmd {
namespace {

std::string_view name_of(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::eos:
      return "eos";
    case engine::FinishReason::stop:
      return "stop";
    case engine::FinishReason::length:
      return "length";
  }
  return "";
}

void announce(const GenerateSetup& setup) {
  for (const std::string& warning : setup.texts.warnings) log_warning(warning);
  for (const std::string& warning : setup.texts.run.settings.warnings) log_warning(warning);
  log_info(setup.mode);
}

/// The requests of a rank: every world-th one.
std::vector<engine::TextRequest> requests_of(const GenerateSetup& setup, const WorkerEnv& worker) {
  std::vector<engine::TextRequest> own;
  for (std::size_t i = setup.done_requests() + static_cast<std::size_t>(worker.rank);
       i < setup.requests.size(); i += static_cast<std::size_t>(worker.world_size)) {
    own.push_back(setup.requests[i]);
  }
  return own;
}

/// Turns the tokens of a rank's texts into lines of output, which rank 0 writes in the order of the
/// prompts.
class Output final : public engine::TextListener {
 public:
  Output(const GenerateSetup& setup, const WorkerEnv& worker, const Clock& clock)
      : setup_(setup), worker_(worker), clock_(clock), next_(setup.done) {
    begun_ = clock.now_seconds();
    if (worker.rank == 0) lines_.emplace(setup.output_file);
  }

  Answer add(std::size_t index, std::int32_t token) override {
    Text& text = texts_.try_emplace(index, *setup_.texts.encoder, setup_.texts.stop).first->second;
    text.ids.push_back(token);
    const bool ends = is_end(token);
    const std::string piece = text.stream.add(token);
    text.written += piece;
    if (setup_.streams) show(piece);
    if (ends || !text.stop.complete(piece, text.stream.pending())) return Answer::goes_on;
    return Answer::ends;
  }

  void end(std::size_t index, engine::FinishReason reason) override {
    Text text = std::move(texts_.extract(index).mapped());
    const std::string last = text.stream.finish();
    if (setup_.streams) show(last + "\n");
    using Object = nlohmann::ordered_json;
    const Object line{{"completion", text.written + last},
                      {"completion_ids", text.ids},
                      {"finish_reason", name_of(reason)}};
    box_ += fmt::format("{} {} {}\n", global_index(index), text.ids.size(),
                        line.dump(-1, ' ', false, Object::error_handler_t::replace));
  }

  std::string outbox() override { return std::exchange(box_, {}); }

  void inbox(int /*rank*/, std::string_view text) override {
    if (!lines_) return;
    for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      take(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    for (auto found = waiting_.find(next_); found != waiting_.end();
         found = waiting_.find(++next_)) {
      if (!setup_.streams || !setup_.output_file.empty()) lines_->write(std::move(found->second));
      waiting_.erase(found);
    }
  }

  /// Says on rank 0 how fast it was.
  void report() const {
    if (!lines_) return;
    const double seconds = clock_.now_seconds() - begun_;
    log_info(fmt::format("{} with {} in {:.3f} s: {:.1f} tokens/s",
                         counted(static_cast<std::int64_t>(next_ - setup_.done), "text"),
                         counted(static_cast<std::int64_t>(all_tokens_), "new token"), seconds,
                         static_cast<double>(all_tokens_) / seconds));
  }

 private:
  struct Text {
    Text(const data::TextEncoder& encoder, const std::vector<std::string>& stops)
        : stream(encoder), stop(stops) {}
    std::vector<std::int32_t> ids;
    std::string written;
    data::TextStream stream;
    data::StopStrings stop;
  };

  [[nodiscard]] bool is_end(std::int32_t token) const {
    const auto& ends = setup_.texts.choice.end_tokens;
    return std::ranges::find(ends, token) != ends.end();
  }
  static void show(std::string_view text) {
    fmt::print("{}", text);
    std::fflush(stdout);
  }
  /// Returns the place of one of this rank's texts among all texts.
  [[nodiscard]] std::size_t global_index(std::size_t index) const {
    const std::size_t texts = setup_.texts_per_request();
    const std::size_t request = setup_.done_requests() + static_cast<std::size_t>(worker_.rank) +
                                index / texts * static_cast<std::size_t>(worker_.world_size);
    return request * texts + index % texts;
  }
  /// "INDEX TOKENS JSON".
  void take(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t second = line.find(' ', first + 1);
    const std::size_t index = std::stoull(std::string(line.substr(0, first)));
    if (index < setup_.done) return;  // of a search whose other texts are missing
    all_tokens_ += std::stoull(std::string(line.substr(first + 1, second - first - 1)));
    waiting_[index] = std::string(line.substr(second + 1));
  }

  const GenerateSetup& setup_;
  const WorkerEnv& worker_;
  const Clock& clock_;
  double begun_ = 0;
  std::map<std::size_t, Text> texts_;  ///< that grow, by request
  std::string box_;
  // On rank 0.
  std::optional<OutputLines> lines_;
  std::map<std::size_t, std::string> waiting_;  ///< for earlier ones
  std::size_t next_;
  std::size_t all_tokens_ = 0;
};

int run_generation(std::span<const std::string> arguments, ProgressPage& progress) {
  progress.enter(RunPhase::starting);
  const WorkerEnv worker = read_worker_env();
  prepare_compute_threads(core_share(worker));
  const GenerateSetup setup =
      set_up_generation(arguments, read_generate_input(arguments), place_of(worker));
  if (worker.rank == 0) announce(setup);
  session::JoinedRank rank(worker, setup.texts.run.model.device, progress);
  session::TextSession session(setup.texts.run, rank, generate_remedies(), setup.texts.choice,
                               engine::Generator::Cache::fresh);
  Output output(setup, worker, rank.clock());
  session.run(requests_of(setup, worker), output);
  output.report();
  rank.control_group().barrier();
  return status::done;
}

}  // namespace

int generate_command(std::span<const std::string> arguments) {
  ProgressPage progress = ProgressPage::from_environment();
  try {
    return run_generation(arguments, progress);
  } catch (const Error& error) {
    throw engine::name_collective(error, progress);
  }
}

}  // namespace dstrain::cmd
