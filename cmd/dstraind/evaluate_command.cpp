#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/dstraind/commands.h"
#include "cmd/dstraind/evaluate_model.h"
#include "cmd/evaluate_setup.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/units.h"
#include "runtime/engine/name_collective.h"
#include "runtime/monitor/progress_line.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/os/file.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

using Json = nlohmann::ordered_json;

/// An evaluation's JSON object, and its line for people.
struct EvaluationReport {
  Json json;
  std::string line;
};

void announce_evaluation(const TrainSetup& setup, const WorkerEnv& worker) {
  const config::TrainSettings& settings = setup.settings;
  for (const std::string& warning : settings.warnings) log_warning(warning);
  for (const std::string& note : setup.notes) log_info(note);
  const auto& questions = setup.data.questions;
  log_info(fmt::format(
      "{}: {} parameters, {}, {}, ZeRO stage {}, {}", setup.model.name,
      setup.memory.layout->numel(), config::precision_name(settings.dtype),
      counted(worker.world_size, "rank"), settings.zero.stage,
      questions ? fmt::format("{} questions with {} choices, of up to {} tokens",
                              questions->questions().size(), questions->sequences().size(),
                              settings.data.block_size)
                : fmt::format("{} samples of {} tokens", setup.data.validation_samples.count,
                              settings.data.block_size)));
  if (setup.model.device != DeviceKind::cpu) {
    log_info(fmt::format("the ranks compute on {}", name_of(setup.model.device)));
  }
}

void add_speed(Json& json, std::int64_t samples, double seconds) {
  json["samples"] = samples;
  json["eval_runtime"] = seconds;
  json["eval_samples_per_second"] = static_cast<double>(samples) / seconds;
}

EvaluationReport evaluate_losses(const TrainSetup& setup, session::JoinedRank& rank) {
  const std::vector<std::int32_t> bytes = text_bytes(setup);
  const auto [losses, seconds] = measure_losses(setup, rank, bytes);
  const double loss = losses.sum / static_cast<double>(losses.labels);
  const bool knows_bytes = losses.bytes > 0;
  const double bits = losses.sum / std::log(2.0) / static_cast<double>(losses.bytes);
  EvaluationReport report;
  report.json["eval_loss"] = loss;
  report.json["perplexity"] = std::exp(loss);
  report.json["bits_per_byte"] = knows_bytes ? Json(bits) : Json();
  report.json["tokens"] = losses.labels;
  add_speed(report.json, setup.data.validation_samples.count, seconds);
  report.line =
      fmt::format("{}{} | {} tokens", monitor::describe_held_out(loss),
                  knows_bytes ? fmt::format(" | {:.4f} bits per byte", bits) : "", losses.labels);
  return report;
}

EvaluationReport evaluate_choices(const TrainSetup& setup, session::JoinedRank& rank) {
  const auto [scores, seconds] = measure_choices(setup, rank);
  const std::int64_t questions = std::ssize(setup.data.questions->questions());
  const auto share = [&](std::int64_t right) {
    return static_cast<double>(right) / static_cast<double>(questions);
  };
  EvaluationReport report;
  report.json["acc"] = share(scores.right);
  report.json["acc_norm"] = share(scores.right_per_byte);
  add_speed(report.json, questions, seconds);
  report.line = fmt::format("accuracy {:.4f} | normalized by bytes {:.4f} | {} questions",
                            share(scores.right), share(scores.right_per_byte), questions);
  return report;
}

void write(const EvaluationReport& report, const std::string& file) {
  fmt::print(stderr, "{}\n", report.line);
  const std::string text = report.json.dump() + "\n";
  if (!file.empty()) return write_text_file(file, text);
  fmt::print("{}", text);
  std::fflush(stdout);
}

int run_evaluation(std::span<const std::string> arguments, ProgressPage& progress) {
  progress.enter(RunPhase::starting);
  const WorkerEnv worker = read_worker_env();
  prepare_compute_threads(core_share(worker));
  const EvaluateSetup setup = set_up_evaluation(arguments, place_of(worker));
  if (worker.rank == 0) {
    check_output_file(setup);
    announce_evaluation(setup.run, worker);
  }
  session::JoinedRank rank(worker, setup.run.model.device, progress);
  const EvaluationReport report = setup.run.data.questions ? evaluate_choices(setup.run, rank)
                                                           : evaluate_losses(setup.run, rank);
  if (worker.rank == 0) write(report, setup.output_file);
  rank.control_group().barrier();
  return status::done;
}

}  // namespace

int evaluate_command(std::span<const std::string> arguments) {
  ProgressPage progress = ProgressPage::from_environment();
  try {
    return run_evaluation(arguments, progress);
  } catch (const Error& error) {
    throw engine::name_collective(error, progress);
  }
}

}  // namespace dstrain::cmd
