#include "runtime/session/training_rank.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/printable.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/comm/hierarchical/node_map.h"
#include "runtime/engine/micro_batch.h"
#include "runtime/engine/model_saver.h"
#include "runtime/engine/profile_report.h"
#include "runtime/ops/library_memory.h"
#include "runtime/session/checkpoint_setup.h"
#include "runtime/session/resume_plan.h"

namespace dstrain::session {
namespace {

/// "rate 0.001, linear with total_steps 4"
std::string describe_schedule(const engine::TrainerState& state) {
  const auto json = nlohmann::json::parse(state.scheduler);
  std::string words =
      fmt::format("rate {}, {}", engine::base_rate(state), json.value("type", "unknown"));
  const char* join = " with";
  for (const auto& [key, value] : json.items()) {
    if (key == "type") continue;
    words += fmt::format("{} {} {}", std::exchange(join, ","), key,
                         value.is_string() ? value.get<std::string>() : value.dump());
  }
  return printable(words);
}

}  // namespace

TrainingRank::TrainingRank(RunSetup& setup, JoinedRank& rank, const Remedies& remedies, Say say)
    : setup_(setup),
      rank_(rank),
      worker_(rank.worker()),
      progress_(rank.progress()),
      say_(std::move(say)),
      session_(session_inputs(setup, rank, remedies)),
      control_group_(session_.control_group()),
      streams_(session_.streams()) {
  const InPhase loading(&progress_, RunPhase::loading);
  load();
  set_up_tuning();
  engine::Checkpointer::Options options =
      checkpointer_options(setup_, rank_, setup_.settings.output.directory);
  options.saved_step = continued_step_;
  checkpointer_ = std::make_unique<engine::Checkpointer>(
      checkpointer_inputs(setup_, rank_, session_, say_, [this] { flush_metrics(); }), options,
      streams_.compute);
  checkpointer_->rehearse(setup_.settings.steps);
}

void TrainingRank::load() {
  if (setup_.initial_parameters) {
    return session_.store().load({*setup_.initial_parameters}, streams_.compute);
  }
  engine::ResumePlan plan = plan_resume(setup_.settings, worker_.rank);
  plan.visible_seconds = visible_within(worker_);
  const engine::Resumed resumed = engine::resume(
      plan, setup_.state, {setup_.model, session_.store(), control_group_}, streams_.compute);
  engine::go_on_from(resumed.state, setup_.state);
  setup_.state.data_start = data_start(resumed.state);
  setup_.state.matmul_algorithms = resumed.state.matmul_algorithms;
  setup_.state.best = find_best(resumed);
  if (worker_.rank == 0) {
    log_info(fmt::format("going on from {}, after step {}", resumed.checkpoint.string(),
                         resumed.state.global_step));
    if (setup_.settings.loss_scale.machine != config::LossScaleSettings::Machine::fixed) {
      log_info(setup_.state.overflow.loss_scaler
                   ? fmt::format("the loss scale is the checkpoint's, {}",
                                 setup_.state.overflow.loss_scaler->scale)
                   : fmt::format("the checkpoint has no loss scale that changes; it begins at {}",
                                 setup_.settings.loss_scale.initial));
    }
    if (setup_.settings.checkpoint.ignore_data_skip) tell_new_data(resumed);
    if (!resumed.state.data.file.empty() && resumed.state.data.digest.empty() &&
        resumed.state.data.file != setup_.state.data.file) {
      log_warning(
          fmt::format("the training data is {} now and was {} in the checkpoint, of as many "
                      "bytes: it should hold the same",
                      printable(setup_.state.data.file), printable(resumed.state.data.file)));
    }
    const auto changes = engine::rule_changes(resumed.state, setup_.state);
    if (!changes.empty()) {
      log_warning(fmt::format("changed since the checkpoint: {}", fmt::join(changes, ", ")));
    }
    if (!engine::same_schedule(resumed.state, setup_.state)) {
      log_warning(
          fmt::format("the learning rate follows this run's schedule, {}, from here on; the "
                      "checkpoint's was {}",
                      describe_schedule(setup_.state), describe_schedule(resumed.state)));
    }
  }
  std::error_code ignored;
  const std::filesystem::path own = std::filesystem::path(setup_.settings.output.directory) /
                                    checkpoint::directory_name(resumed.state.global_step);
  // Another host may see it only later; what follows, all ranks do alike.
  const bool is_own = std::filesystem::equivalent(resumed.checkpoint, own, ignored);
  if (control_group_.broadcast(is_own ? "own" : "", 0).empty()) return;
  setup_.state.logged_step = resumed.state.logged_step;
  continued_step_ = resumed.state.global_step;
}

/// Where the data begin that the run goes on with.
engine::DataStart TrainingRank::data_start(const engine::TrainerState& saved) const {
  if (!setup_.settings.checkpoint.ignore_data_skip) return saved.data_start;
  config::DataSettings lengths;
  lengths.block_size = saved.block_size;
  lengths.source_length = saved.source_length;
  const std::int64_t samples = saved.consumed_samples - saved.data_start.samples;
  return {.step = saved.global_step,
          .samples = saved.consumed_samples,
          .tokens = saved.data_start.tokens + engine::batch_shape(samples, lengths).positions()};
}

/// --ignore_data_skip.
void TrainingRank::tell_new_data(const engine::Resumed& resumed) const {
  std::vector<std::string> texts;
  for (const engine::RunDifference& difference :
       engine::data_differences(resumed.state, setup_.state, resumed.checkpoint.string())) {
    texts.push_back(printable(difference.text));
  }
  log_info(fmt::format("--ignore_data_skip: the data begin anew{}{}", texts.empty() ? "" : "; ",
                       fmt::join(texts, "; ")));
}

/// What a checkpoint keeps of --tune_matmuls is forgotten by a run that does not ask for it.
void TrainingRank::set_up_tuning() {
  std::string& kept = setup_.state.matmul_algorithms;
  if (setup_.settings.tune_matmuls) {
    const Bytes budget = worker_.device_memory_bytes;
    tuning_.emplace(MatmulTuning::Parts{
        session_.backend(), streams_, control_group_,
        budget > 0 ? budget - setup_.memory.plan.total() : std::numeric_limits<Bytes>::max()});
    return tuning_->use_kept(kept);
  }
  if (!kept.empty() && worker_.rank == 0) {
    log_warning(
        "the algorithms for matrix products that the checkpoint keeps are not used without "
        "--tune_matmuls, and are forgotten");
  }
  kept.clear();
}

/// The best checkpoint so far, from this run's output directory; nothing if rank 0 does not see it
/// or it was evaluated on other data.
std::optional<engine::BestCheckpoint> TrainingRank::find_best(const engine::Resumed& resumed) {
  std::optional<engine::BestCheckpoint> best = resumed.state.best;
  if (setup_.state.held_out.empty()) {
    setup_.state.held_out = resumed.state.held_out;
    setup_.state.held_out_content = resumed.state.held_out_content;
  }
  if (!best) return best;
  if (!engine::same_held_out(setup_.state, resumed.state)) {
    if (worker_.rank == 0) {
      log_warning(fmt::format(
          "losses on {} cannot be compared with those on {}{}: the best checkpoint "
          "so far, {}, is forgotten",
          setup_.state.held_out, resumed.state.held_out,
          setup_.state.held_out == resumed.state.held_out ? " as it was" : "", best->directory));
    }
    return std::nullopt;
  }
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path beside = resumed.checkpoint.parent_path();
  const fs::path path = beside / best->directory;
  const bool seen =
      !control_group_.broadcast(fs::is_directory(path, ignored) ? "seen" : "", 0).empty();
  const bool is_own = fs::equivalent(beside, setup_.settings.output.directory, ignored);
  if (control_group_.broadcast(is_own ? "own" : "", 0).empty()) {
    best->directory = fs::absolute(path);
  }
  if (seen) return best;
  if (worker_.rank == 0 && setup_.settings.evaluation.tracks_best) {
    log_warning(fmt::format("{}, the best checkpoint so far, is gone", path.string()));
  }
  return std::nullopt;
}

/// Of this run, at its end.
void TrainingRank::load_checkpoint(const std::filesystem::path& path) {
  using Files = checkpoint::Checkpoint::Files;
  const Files files = setup_.settings.checkpoint.node_local ? Files::own : Files::all;
  try {
    engine::resume(
        {.directory = path.parent_path(),
         .names = {path.filename().string()},
         .files = files,
         .other_data = engine::OtherData::taken,  // the run may have begun it with others
         .visible_seconds = visible_within(worker_)},
        setup_.state, {setup_.model, session_.store(), control_group_}, streams_.compute);
  } catch (const Error& error) {
    fail(error.code(), "--load_best_model_at_end: {}; no model is written to {}", error.what(),
         setup_.settings.output.directory);
  }
}

/// --load_best_model_at_end.
void TrainingRank::load_best(const Trainer::Outcome& outcome) {
  if (!outcome.best) {
    if (worker_.rank == 0) {
      log_warning(
          "--load_best_model_at_end: no checkpoint was evaluated since the best one is looked for; "
          "the model is the last");
    }
    return;
  }
  const std::filesystem::path path =
      std::filesystem::path(setup_.settings.output.directory) / outcome.best->directory;
  if (outcome.best->step != outcome.steps) load_checkpoint(path);
  if (worker_.rank == 0) {
    say_(fmt::format("best checkpoint: {} | held-out loss {:.4f}", path.string(),
                     outcome.best->metric));
  }
}

Trainer::Outcome TrainingRank::train(const StopSignals& signals) {
  const config::TrainSettings& settings = setup_.settings;
  const data::LoaderShare share{settings.micro_batch_size, worker_.rank, worker_.world_size};
  const data::BatchLoader training(*setup_.data.training_data, share,
                                   {.samples = setup_.data.training_samples,
                                    .global_batch = settings.train_batch_size,
                                    .shuffle = settings.data.shuffle,
                                    .drop_last = settings.data.drop_last,
                                    .seed = settings.data.seed,
                                    .anew_at = setup_.state.data_start.step});
  std::optional<data::EvaluationLoader> validation;
  if (setup_.data.validation_data) {
    data::LoaderShare evaluated = share;
    evaluated.micro_batch = settings.evaluation.batch_size;
    validation.emplace(*setup_.data.validation_data, evaluated, setup_.data.validation_samples);
  }
  if (worker_.rank == 0) {
    const std::string path = settings.output.directory + "/metrics.jsonl";
    metrics_.emplace(path, monitor::MetricsResume{continued_step_, setup_.state.logged_step});
    if (!metrics_->missing().empty()) log_warning(path + ": " + metrics_->missing());
  }
  if (!settings.output.profile.empty()) {  // a profiler may watch some of the ranks
    control_group_.barrier();
    session_.timeline()->restart();
  }
  Trainer trainer({.setup = setup_,
                   .rank = rank_,
                   .session = session_,
                   .training_data = training,
                   .validation_data = validation ? &*validation : nullptr,
                   .checkpointer = *checkpointer_,
                   .metrics = metrics_ ? &*metrics_ : nullptr,
                   .tuning = tuning_ ? &*tuning_ : nullptr,
                   .say = say_,
                   .signals = signals});
  Trainer::Outcome outcome = trainer.run();
  tell_library_memory();
  return outcome;
}

/// Tells what the plan does not count. The context was there before the session looked for room.
void TrainingRank::tell_library_memory() {
  if (rank_.room().free == 0 || worker_.rank != 0) return;
  const Bytes own = session_.memory().ledger(MemoryTier::device).current();
  const Bytes others = rank_.room().free - session_.backend().free_memory() - own;
  if (others <= 0) return;
  log_info(fmt::format(
      "CUDA's libraries took {} of GPU {} beside the plan and the context; {} were left to them",
      format_bytes(others), rank_.room().gpu,
      format_bytes(ops::library_bytes(setup_.model.device, worker_.world_size))));
}

/// Rows are no reason to give up a checkpoint.
void TrainingRank::flush_metrics() const {
  if (!metrics_) return;
  try {
    metrics_->make_durable();
  } catch (const Error& error) {
    log_warning(
        fmt::format("{}; a power cut may lose rows that the checkpoint counts on", error.what()));
  }
}

std::string TrainingRank::lost_metrics() {
  if (!metrics_) return {};
  metrics_->flush();
  return metrics_->failure();
}

void TrainingRank::save(const Trainer::Outcome& outcome) {
  const InPhase exporting(&progress_, RunPhase::exporting);
  if (setup_.settings.evaluation.loads_best && !outcome.stopped) load_best(outcome);
  const std::filesystem::path directory = setup_.settings.output.directory;
  const std::exception_ptr failure = engine::save_model(
      setup_.model, session_.store(), worker_.rank == 0 ? &directory : nullptr, streams_.compute);
  if (failure) std::rethrow_exception(failure);
  control_group_.barrier();
  if (setup_.settings.output.profile.empty()) return;
  engine::write_profile(*session_.timeline(), setup_.model, control_group_,
                        setup_.settings.output.profile);
}

}  // namespace dstrain::session
