#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cmd/dstraind/commands.h"
#include "cmd/dstraind/evaluate_model.h"
#include "cmd/dstraind/rule_summary.h"
#include "cmd/memory_savings.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/units.h"
#include "runtime/config/kept_batch.h"
#include "runtime/engine/name_collective.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/rank/output_lock.h"
#include "runtime/session/resume_plan.h"
#include "runtime/session/stop_signals.h"
#include "runtime/session/training_rank.h"

namespace dstrain::cmd {
namespace {

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// "bf16 over fp32 masters, gradients sent in bf16".
std::string describe_precision(const config::TrainSettings& settings, int world) {
  const config::StatePrecision& kept = settings.precision;
  std::string text(config::precision_name(settings.dtype));
  if (!settings.trains) return text;
  const auto add_half = [&text](std::string_view what, DType dtype) {
    if (is_half(dtype)) text += fmt::format(", {} in {}", what, config::precision_name(dtype));
  };
  if (is_half(settings.dtype)) {
    text += is_half(kept.masters) ? " without fp32 masters" : " over fp32 masters";
  }
  add_half("optimizer states", kept.optimizer_states);
  add_half("gradients kept", kept.gradients);
  if (world > 1) add_half("gradients sent", kept.communication);
  return text;
}

void announce(const TrainSetup& setup, const WorkerEnv& worker) {
  const config::TrainSettings& settings = setup.settings;
  for (const std::string& warning : settings.warnings) log_warning(warning);
  for (const std::string& note : setup.notes) log_info(note);
  const std::int64_t batch = settings.trains ? settings.train_batch_size
                                             : settings.evaluation.batch_size * worker.world_size;
  const std::int64_t source = settings.data.source_length;
  log_info(fmt::format(
      "{}: {} parameters, {}, {}, ZeRO stage {}, {} sequences of {} tokens{} {}", setup.model.name,
      setup.memory.layout->numel(), describe_precision(settings, worker.world_size),
      counted(worker.world_size, "rank"), settings.zero.stage, batch, settings.data.block_size,
      source > 0 ? fmt::format(" from sources of {}", source) : "",
      settings.trains ? fmt::format("per step, {} an epoch", setup.data.training_samples)
                      : fmt::format("at a time, {} in all", setup.data.validation_samples.count)));
  if (setup.model.device != DeviceKind::cpu) {
    log_info(fmt::format("the ranks compute on {}", name_of(setup.model.device)));
  }
  if (settings.trains) log_info(describe_rule(setup));
  log_info(zero::describe(setup.memory.plan, setup.memory.formula));
}

void tell_stop(std::int64_t step, const std::filesystem::path& checkpoint, bool new_data) {
  log_warning(
      fmt::format("stopped on request after step {}, saved in {}; to resume, rerun the same "
                  "command with --resume_from_checkpoint latest{}",
                  step, checkpoint.string(), new_data ? " and without --ignore_data_skip" : ""));
}

/// The model or the checkpoint is there; what was written before it is not.
[[noreturn]] void fail_without_output(const std::string& directory) {
  fail(ErrorCode::io,
       "--output_dir {}: it was removed, or another was put in its place, while the training ran: "
       "what had been written there, as checkpoints and metrics.jsonl, is gone; what was written "
       "at the end is there",
       directory);
}

/// A launcher has read the file of options, and says where each stands.
config::ExpandedArguments expand(std::span<const std::string> arguments) {
  const char* const places = std::getenv(env::option_places);
  if (places == nullptr) return config::ExpandedArguments(arguments);
  return {arguments, config::OptionPlaces::decode(places)};
}

/// What a start of this job wrote before it was begun again is the job's own.
config::TrainOptions read_options(std::span<const std::string> arguments) {
  config::TrainOptions options = config::parse_train_options(expand(arguments));
  if (std::getenv(env::restart_count) != nullptr) options.overwrite_output_dir.value = true;
  return options;
}

std::string job_id() {
  const char* const id = std::getenv(env::job);
  return id == nullptr ? "" : id;
}

/// What the launcher says of an elastic job's batch; none of another job.
std::optional<config::KeptBatch> read_kept_batch() {
  const char* const text = std::getenv(env::kept_batch);
  if (text == nullptr) return std::nullopt;
  const Result<config::KeptBatch> kept = config::decode_kept_batch(text);
  if (!kept.ok()) {
    fail(ErrorCode::usage, "environment variable {}: {}", env::kept_batch, kept.error());
  }
  return kept.value();
}

/// One rank of a node looks at its memory for all: none takes its part before they have met.
int ranks_to_check(const WorkerEnv& worker) {
  return worker.local_rank == 0 ? worker.local_world_size : 0;
}

/// Adds to "no memory" of the device or the machine what would help, where the plan is no longer
/// what decides; other errors go on.
[[noreturn]] void advise(const Error& error, const TrainSetup& setup, const WorkerEnv& worker) {
  if (error.code() == ErrorCode::out_of_device_memory) {
    fail(error.code(), "{}. The run needs {} of device memory per rank; {}", error.what(),
         format_bytes(setup.memory.plan.total()), describe_savings(setup, 0));
  }
  if (error.code() == ErrorCode::out_of_memory) {
    const int ranks = worker.local_world_size;
    fail(error.code(), "{}. The plan for {} of this machine is {} of its memory; {}", error.what(),
         counted(ranks, "rank"), format_bytes(ranks * setup.memory.plan.machine_total()),
         describe_node_savings(setup, ranks, 0));
  }
  throw;
}

void save_outcome(session::TrainingRank& rank, const session::Trainer::Outcome& outcome) {
  try {
    rank.save(outcome);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io) throw;
    fail(ErrorCode::unsaved, "{}", error.what());
  }
}

/// The model is there by now, as far as it could be written.
void fail_unless_saved(session::TrainingRank& rank,
                       const session::Trainer::Outcome& outcome,
                       const std::string& directory) {
  std::vector<std::string> problems;
  if (!outcome.unsaved.empty()) problems.push_back(outcome.unsaved);
  if (std::string lost = rank.lost_metrics(); !lost.empty()) problems.push_back(std::move(lost));
  if (problems.empty()) return;
  fail(ErrorCode::unsaved, "{}; the model is in {}", fmt::join(problems, "; "), directory);
}

/// Trains as one rank. Returns the exit status.
int train(TrainSetup& setup,
          session::JoinedRank& joined,
          session::StopSignals& signals,
          const std::optional<OutputLock>& lock) {
  const WorkerEnv& worker = joined.worker();
  const session::Remedies remedies = remedies_for(setup);
  session::TrainingRank rank(setup, joined, remedies, say);
  signals.keep();  // until here there is nothing to save
  const session::Trainer::Outcome outcome = rank.train(signals);
  if (outcome.stopped && outcome.steps > 0) {
    if (worker.rank == 0) {
      tell_stop(outcome.steps, rank.checkpoint_of(outcome.steps),
                setup.settings.checkpoint.ignore_data_skip);
    }
    return status::stopped_with_checkpoint;
  }
  save_outcome(rank, outcome);
  const std::string& directory = setup.settings.output.directory;
  if (lock && !lock->is_in_place()) fail_without_output(directory);
  if (worker.rank == 0) fail_unless_saved(rank, outcome, directory);
  if (!outcome.stopped) return status::done;
  if (worker.rank == 0) log_warning("stopped on request before the first step");
  // Another rank may have been asked, and only that one: then as if by the launcher.
  return 128 + (signals.arrived() != 0 ? signals.arrived() : SIGTERM);
}

int train_or_evaluate(std::span<const std::string> arguments, ProgressPage& progress) {
  session::StopSignals signals;
  progress.enter(RunPhase::starting);
  const WorkerEnv worker = read_worker_env();
  prepare_compute_threads(core_share(worker));
  const char* const checked = std::getenv(env::checked);
  const bool looks = worker.rank == 0 && (checked == nullptr || std::string_view(checked) != "1");
  const config::TrainOptions options = read_options(arguments);
  TrainSetup setup = config::located(options.places, [&] {
    if (looks) {
      refuse_locked_output(options.output_dir.value);
      config::check_train_paths(options);
    }
    TrainSetup ready = set_up_training(options, {.world_size = worker.world_size,
                                                 .device = resolve_device(worker.device),
                                                 .device_memory = worker.device_memory_bytes,
                                                 .host_memory = worker.host_memory_bytes,
                                                 .node_ranks = ranks_to_check(worker),
                                                 .kept_batch = read_kept_batch()});
    if (!looks) return ready;
    session::refuse_unfit_output(ready.settings, worker.world_size);
    if (ready.settings.trains) session::check_resume(ready);
    config::prepare_output_directory(options);
    return ready;
  });
  std::optional<OutputLock> lock;
  if (worker.rank == 0) {
    lock.emplace(setup.settings.output.directory, OutputLock::Holder::rank, job_id());
    if (looks) {  // once more: a job may have ended there meanwhile
      config::check_train_paths(options);
      if (setup.settings.trains) session::check_resume(setup);
    }
    announce(setup, worker);
  }
  try {
    session::JoinedRank rank(worker, setup.model.device, progress);
    return setup.settings.trains ? train(setup, rank, signals, lock) : evaluate_model(setup, rank);
  } catch (const Error& error) {
    advise(error, setup, worker);
  }
}

}  // namespace

int train_command(std::span<const std::string> arguments) {
  ProgressPage progress = ProgressPage::from_environment();
  try {
    return train_or_evaluate(arguments, progress);
  } catch (const Error& error) {
    throw engine::name_collective(error, progress);
  }
}

}  // namespace dstrain::cmd
