#include "runtime/session/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/log.h"
#include "runtime/engine/evaluation.h"
#include "runtime/monitor/progress_line.h"
#include "runtime/profile/recording.h"

namespace dstrain::session {
namespace {

bool is_nth(std::int64_t step, std::int64_t every) {
  return every > 0 && step % every == 0;
}

/// Peak bytes of a rank: of each tier, and of the device by category.
struct MemoryPeaks {
  std::array<Bytes, memory_tier_names.size()> tiers{};
  CategoryBytes device{};
};

MemoryPeaks peaks_of(const MemoryLedgers& memory) {
  MemoryPeaks peaks;
  for (std::size_t tier = 0; tier < memory.size(); ++tier) {
    peaks.tiers.at(tier) = memory.at(tier).peak();
  }
  const MemoryLedger& device = memory.at(static_cast<std::size_t>(MemoryTier::device));
  for (std::size_t i = 0; i < peaks.device.size(); ++i) {
    peaks.device.at(i) = device.peak(static_cast<MemoryCategory>(i));
  }
  return peaks;
}

/// A rank's own figures for a row of metrics.
struct RankFigures {
  MemoryPeaks memory{};
  std::optional<monitor::GpuLoad> gpu{};
};

}  // namespace

Trainer::Trainer(const Inputs& inputs)
    : inputs_(inputs),
      settings_(inputs.setup.settings),
      state_(inputs.setup.state),
      engine_(inputs.session.engine()),
      control_group_(inputs.session.control_group()),
      timeline_(inputs.session.timeline()),
      progress_(inputs.rank.progress()),
      clock_(inputs.rank.clock()),
      first_step_(state_.global_step + 1),
      total_steps_(settings_.steps),
      save_requests_(inputs.rank.control(), inputs.checkpointer, control_group_),
      best_(settings_.evaluation, state_.best),
      counts_(settings_, state_),
      gpu_meter_([this] { return inputs_.session.backend().read_sensors(); }, clock_) {
  if (settings_.steps_per_print == 0) unprinted_loss_ = state_.unlogged_loss;
}

std::vector<Trainer::Report> Trainer::exchange() {
  const profile::Recording recording(timeline_, profile::Lane::communication,
                                     profile::Activity::exchange);
  begin_work(&progress_, Work::vote);
  reports_are_old_ = false;
  return control_group_.gather(Report{.labels = engine::counted_labels(micro_batches_),
                                      .save_request = save_requests_.vote(),
                                      .save = inputs_.checkpointer.state(),
                                      .stop = inputs_.signals.arrived() != 0});
}

/// Takes the save under way as far as all ranks are.
void Trainer::advance_save() {
  std::vector<engine::Checkpointer::State> saves;
  std::ranges::transform(reports_, std::back_inserter(saves), &Report::save);
  flush_metrics();  // before a checkpoint is committed that counts their steps
  inputs_.checkpointer.advance(saves);
  save_requests_.answer();
}

bool Trainer::stops() const {
  return std::ranges::any_of(reports_, &Report::stop);
}

bool Trainer::saves_on_request(std::int64_t step) {
  std::vector<std::uint32_t> requests;
  std::ranges::transform(reports_, std::back_inserter(requests), &Report::save_request);
  return save_requests_.due(requests, step);
}

bool Trainer::due(const config::Cadence& cadence, std::int64_t step) const {
  switch (cadence.unit) {
    case config::Cadence::Unit::never:
      return false;
    case config::Cadence::Unit::steps:
      return is_nth(step, cadence.steps);
    case config::Cadence::Unit::epochs:
      return inputs_.training_data.order().step_in_epoch(step) == 0 || step == total_steps_;
  }
  return false;
}

bool Trainer::saves_after(std::int64_t step) {
  const config::CheckpointSettings& settings = settings_.checkpoint;
  if (settings.only_better) {
    if (best_.improves(step)) end_save();  // which may have been as good
    return best_.improves(step);
  }
  const bool last = step == total_steps_ && settings.cadence.unit == config::Cadence::Unit::steps;
  return last || due(settings.cadence, step);
}

/// Waits for the save under way. Only what is whole can be the best.
void Trainer::end_save() {
  inputs_.checkpointer.finish();
  best_.saved(inputs_.checkpointer.saved_step());
}

void Trainer::begin_save(std::int64_t step) {
  settle();
  end_save();
  const InPhase saving(&progress_, RunPhase::saving);
  best_.saving(step);
  state_.best = best_.including(step);
  state_.global_step = step;
  counts_.write(state_);
  state_.max_steps = total_steps_;
  state_.epoch = inputs_.training_data.epochs_after(step);
  state_.consumed_samples = state_.data_start.samples + samples_since_start(step);
  flush_metrics();
  begun_save_ = step;
  inputs_.checkpointer.begin(state_);
  reports_are_old_ = true;
}

/// That step `step` and those before it have taken since the data began.
std::int64_t Trainer::samples_since_start(std::int64_t step) const {
  const data::SampleOrder& order = inputs_.training_data.order();
  return order.samples_of(step) - order.samples_of(state_.data_start.step);
}

/// Checkpoints that failed on the way are made up for by a later one.
std::string Trainer::unsaved() const {
  const engine::Checkpointer& checkpointer = inputs_.checkpointer;
  if (checkpointer.saved_step() >= begun_save_) return {};
  return fmt::format("{} could not be saved: {}", checkpointer.path_of(begun_save_).string(),
                     checkpointer.failure());
}

Trainer::Outcome Trainer::stop(std::int64_t step) {
  settle();
  engine::Checkpointer& checkpointer = inputs_.checkpointer;
  end_save();
  save_requests_.answer();
  if (step > 0 && checkpointer.saved_step() != step) {
    begin_save(step);
    end_save();
    if (checkpointer.saved_step() != step) {
      fail(ErrorCode::io, "stopped on request after step {}, which could not be saved: {}", step,
           checkpointer.failure());
    }
  }
  return {step, true};
}

data::StepBatches Trainer::empty_batches() const {
  const std::int64_t micro_steps = settings_.accumulation_steps;
  return {
      data::SampleBuffer(micro_steps * settings_.micro_batch_size, inputs_.training_data.sizes()),
      std::vector<std::int64_t>(static_cast<std::size_t>(micro_steps))};
}

/// Runs on the prefetching thread; `step` counts from 0.
void Trainer::load(std::int64_t step, data::StepBatches& batches) const {
  const profile::Recording recording(timeline_, profile::Lane::data, profile::Activity::load,
                                     step + 1);
  const std::int64_t count = settings_.micro_batch_size;
  for (std::int64_t i = 0; i < std::ssize(batches.first_samples); ++i) {
    batches.first_samples[static_cast<std::size_t>(i)] =
        inputs_.training_data.fill(step, i, batches.samples.rows(i * count, count));
  }
}

/// Waits for the batches of `step`, if there is such a step; those of the step before are spent.
void Trainer::load_next(std::int64_t step, data::BatchPrefetcher& batches) {
  if (step > total_steps_) return;
  const profile::Recording recording(timeline_, profile::Lane::compute, profile::Activity::wait);
  begin_work(&progress_, Work::tokens);
  data::StepBatches& loaded = batches.take(step - 1);
  const std::int64_t count = settings_.micro_batch_size;
  micro_batches_.resize(static_cast<std::size_t>(inputs_.training_data.micro_steps(step - 1)));
  for (std::int64_t i = 0; i < std::ssize(micro_batches_); ++i) {
    const auto index = static_cast<std::size_t>(i);
    micro_batches_[index] =
        engine::micro_batch(loaded.samples.rows(i * count, count), loaded.first_samples[index]);
  }
}

/// The batches are loaded, and their labels are known from the last exchange. A device may be one
/// step behind, so the host learns what was decided on a step when the next one is under way,
/// unless that depends on it.
void Trainer::launch_step(std::int64_t step, data::BatchPrefetcher& batches) {
  if (counts_.waits()) settle();
  engine::StepInput input = counts_.input(step, launched_.has_value());
  input.micro_batches = micro_batches_;
  const Launched launched{step, input.update.learning_rate, input.loss_scale, clock_.now_seconds()};
  for (const Report& rank : reports_) input.labels += rank.labels;
  engine_.accumulate(input);
  settle();
  engine_.update();
  launched_ = launched;
  load_next(step + 1, batches);
  reports_ = exchange();
}

/// Products are known once they have run; what is chosen for them holds from the next step on, and
/// is in the checkpoints from this one on.
void Trainer::tune() {
  if (inputs_.tuning == nullptr) return;
  settle();
  reports_are_old_ = true;  // it may take long, in which a rank is asked to stop
  const double begin = clock_.now_seconds();
  state_.matmul_algorithms = inputs_.tuning->settle(state_.matmul_algorithms);
  leave_out(clock_.now_seconds() - begin);
}

/// Excludes time that was not spent training from all figures.
void Trainer::leave_out(double seconds) {
  reported_at_seconds_ += seconds;
  started_at_seconds_ += seconds;
}

/// Waits for what was decided on the step that was launched last.
void Trainer::settle() {
  if (!launched_) return;
  const Launched launched = *std::exchange(launched_, std::nullopt);
  const ops::StepDecision decision = await_decision(launched.step);
  counts_.settle(launched.step, decision);
  if (!decision.is_taken()) tell_skip(launched.step, decision);
  begin_work(&progress_, Work::vote);
  tell_progress(launched, decision.loss);
  report(launched, decision);
}

ops::StepDecision Trainer::await_decision(std::int64_t step) {
  const profile::Recording recording(profile::beside_device(timeline_), profile::Lane::host,
                                     profile::Activity::wait);
  return engine_.decision(step);
}

void Trainer::tell_skip(std::int64_t step, const ops::StepDecision& decision) {
  const std::string parameter = engine::find_overflow(engine_, inputs_.setup.model, control_group_);
  if (inputs_.metrics == nullptr) return;
  log_warning(counts_.overflow().describe_skip(step, decision, parameter));
}

Trainer::Outcome Trainer::run() {
  started_at_seconds_ = reported_at_seconds_ = clock_.now_seconds();
  reported_step_ = state_.global_step;
  const InPhase training(&progress_, RunPhase::training);
  try {
    return take_steps();
  } catch (const Error& error) {
    // All ranks are here then, and a save of better times may be under way.
    if (error.code() == ErrorCode::diverged) inputs_.checkpointer.finish();
    throw;
  }
}

Trainer::Outcome Trainer::take_steps() {
  const config::TrainSettings& settings = settings_;
  if (first_step_ > total_steps_ && inputs_.metrics != nullptr) {
    inputs_.say(fmt::format("{} steps are taken already, of {}: there is nothing left to train",
                            first_step_ - 1, total_steps_));
  }
  data::BatchPrefetcher batches(
      [this](std::int64_t step, data::StepBatches& target) { load(step, target); }, total_steps_,
      empty_batches());
  load_next(first_step_, batches);
  for (std::int64_t step = first_step_; step <= total_steps_; ++step) {
    if (timeline_ != nullptr) timeline_->begin_step(step);
    progress_.begin_step(step);
    if (reports_are_old_) reports_ = exchange();
    advance_save();
    if (saves_on_request(step - 1)) begin_save(step - 1);
    if (stops()) return stop(step - 1);
    launch_step(step, batches);
    if (timeline_ != nullptr) timeline_->end_step();
    if (step == first_step_) tune();
    if (!engine_.runs_ahead() || logs(step) || prints(step)) settle();
    // First, as the checkpoint of a step says whether it is the best.
    if (step == total_steps_ || due(settings.evaluation.cadence, step)) evaluate(step);
    if (saves_after(step)) begin_save(step);
  }
  end_save();
  save_requests_.answer();
  const std::int64_t skipped = counts_.overflow().state().skipped_steps;
  if (skipped > 0 && inputs_.metrics != nullptr) {
    inputs_.say(fmt::format("{} of {} steps overflowed and were left out", skipped, total_steps_));
  }
  return {std::max(total_steps_, state_.global_step), false, best_.best(), unsaved()};
}

void Trainer::tell_progress(const Launched& launched, double loss) {
  const std::int64_t step = launched.step;
  const double now = clock_.now_seconds();
  const double seconds = now - std::max(launched.begun_at_seconds, settled_at_seconds_);
  settled_at_seconds_ = now;
  const auto step_tokens = static_cast<double>(
      engine::batch_shape(settings_.train_batch_size, settings_.data).positions());
  inputs_.rank.control().tell({.step = step,
                               .steps = total_steps_,
                               .loss = loss,
                               .tokens_per_second = step_tokens / step_rate_.add(seconds),
                               .saved_step = inputs_.checkpointer.saved_step()});
}

monitor::StepMetrics Trainer::measure(std::int64_t step) {
  const data::SampleOrder& order = inputs_.training_data.order();
  const double now = clock_.now_seconds();
  const double seconds = now - reported_at_seconds_;
  const model::BatchShape batch = engine::batch_shape(
      order.samples_of(step) - order.samples_of(reported_step_), settings_.data);
  monitor::StepMetrics metrics;
  metrics.step = step;
  metrics.epoch = inputs_.training_data.epochs_after(step);
  metrics.tokens = state_.data_start.tokens +
                   engine::batch_shape(samples_since_start(step), settings_.data).positions();
  metrics.step_seconds = seconds / static_cast<double>(step - reported_step_);
  metrics.tokens_per_second = static_cast<double>(batch.positions()) / seconds;
  metrics.model_tflops = inputs_.setup.model.flops(batch) / seconds / 1e12;
  metrics.planned = inputs_.setup.memory.plan.bytes;
  reported_step_ = step;
  reported_at_seconds_ = now;
  const RankFigures own{peaks_of(inputs_.session.memory().ledgers), gpu_meter_.load()};
  if (own.gpu && timeline_ != nullptr) {
    timeline_->record_gpu(own.gpu->watts, own.gpu->busy_percent);
  }
  const std::vector<RankFigures> ranks = control_group_.gather(own);
  Bytes largest = -1;
  std::vector<monitor::GpuLoad> gpus;
  for (const auto& [memory, gpu] : ranks) {
    if (gpu) gpus.push_back(*gpu);
    for (std::size_t tier = 0; tier < memory.tiers.size(); ++tier) {
      metrics.memory.at(tier) = std::max(metrics.memory.at(tier), memory.tiers.at(tier));
    }
    if (memory.tiers.front() <= largest) continue;
    largest = memory.tiers.front();
    metrics.device_categories = memory.device;
  }
  if (!gpus.empty()) metrics.gpus = monitor::load_of_all(gpus);
  return metrics;
}

/// In the metrics.
bool Trainer::logs(std::int64_t step) const {
  return step == 1 || step == total_steps_ || due(settings_.output.logging, step);
}

/// On the terminal.
bool Trainer::prints(std::int64_t step) const {
  const std::int64_t every = settings_.steps_per_print;
  if (every > 0 && is_nth(step, every)) return true;
  if (every > 0 && !settings_.prints_logged_steps) return step == 1 || step == total_steps_;
  return logs(step) || step == first_step_;
}

void Trainer::report(const Launched& launched, const ops::StepDecision& decision) {
  const std::int64_t step = launched.step;
  for (engine::MeanLoss* const mean : {&state_.unlogged_loss, &unprinted_loss_}) {
    mean->add(decision.loss);
  }
  const bool logged = logs(step);
  const bool printed = prints(step);
  if (!logged && !printed) return;
  if (logged) state_.logged_step = step;
  monitor::StepMetrics metrics = measure(step);
  metrics.step_loss = decision.loss;
  metrics.learning_rate = launched.learning_rate;
  metrics.gradient_norm = decision.gradient_norm;
  metrics.loss_scale = launched.loss_scale;
  metrics.skipped_steps = counts_.overflow().state().skipped_steps;
  const std::string times = printed ? describe_times() : "";
  if (logged) {
    metrics.loss = std::exchange(state_.unlogged_loss, {}).value_or(decision.loss);
    if (inputs_.metrics != nullptr) write(metrics);
  }
  if (!printed) return;
  metrics.loss = std::exchange(unprinted_loss_, {}).value_or(decision.loss);
  if (inputs_.metrics != nullptr) print(metrics, times);
}

void Trainer::print(const monitor::StepMetrics& metrics, const std::string& times) {
  const double seconds_per_step = (clock_.now_seconds() - started_at_seconds_) /
                                  static_cast<double>(metrics.step - first_step_ + 1);
  inputs_.say(
      monitor::to_text(monitor::ProgressLine{
          .step = metrics.step,
          .steps = total_steps_,
          .loss = metrics.loss,
          .learning_rate = metrics.learning_rate,
          .gradient_norm = metrics.gradient_norm,
          .tokens_per_second = metrics.tokens_per_second,
          .seconds_left = seconds_per_step * static_cast<double>(total_steps_ - metrics.step)}) +
      times);
}

/// Training goes on if the disk is full; rows that could not be written wait.
template <class Metrics>
void Trainer::write(const Metrics& metrics) {
  inputs_.metrics->write(metrics);
  tell_metrics_failure();
}

void Trainer::flush_metrics() {
  if (!metrics_wait_) return;
  inputs_.metrics->flush();
  tell_metrics_failure();
}

void Trainer::tell_metrics_failure() {
  const std::string& failure = inputs_.metrics->failure();
  if (!failure.empty() && !metrics_wait_) {
    log_warning(failure + "; the lines are kept and tried again");
  }
  metrics_wait_ = !failure.empty();
}

/// The times within the last step, as a mean over the ranks; empty without a timeline.
std::string Trainer::describe_times() {
  if (timeline_ == nullptr) return "";
  timeline_->catch_up();
  const profile::Ring<profile::StepTimes>& steps = timeline_->steps();
  profile::StepTimes sum;
  for (const profile::StepTimes& rank : control_group_.gather(steps[steps.pushed() - 1])) {
    sum += rank;
  }
  return " | " + profile::describe(sum, control_group_.size());
}

void Trainer::evaluate(std::int64_t step) {
  if (inputs_.validation_data == nullptr) return;
  settle();
  reports_are_old_ = true;  // it may take long, in which a rank is asked to stop
  const InPhase evaluating(&progress_, RunPhase::evaluating);
  const double begin = clock_.now_seconds();
  const double loss = engine::evaluate(engine_, *inputs_.validation_data, control_group_);
  best_.evaluated(step, loss);
  leave_out(clock_.now_seconds() - begin);
  if (inputs_.metrics == nullptr) return;
  write(monitor::EvalMetrics{step, loss});
  inputs_.say(fmt::format("step {}/{} | {}", step, total_steps_, monitor::describe_held_out(loss)));
}

}  // namespace dstrain::session
