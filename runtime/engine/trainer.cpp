#include "runtime/engine/trainer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/comm/gather_values.h"
#include "runtime/monitor/progress.h"
#include "runtime/optim/schedule.h"

namespace dstrain::engine {
namespace {

std::int64_t count_steps(const config::TrainSettings& settings, std::int64_t steps_per_epoch) {
  if (settings.max_steps > 0) return settings.max_steps;
  return static_cast<std::int64_t>(
      std::ceil(settings.num_train_epochs * static_cast<double>(steps_per_epoch)));
}

bool due(std::int64_t step, std::int64_t every) {
  return every > 0 && step % every == 0;
}

/// Peak bytes of a rank: in all, then by category.
struct MemoryPeaks {
  Bytes total = 0;
  std::array<Bytes, memory_category_names.size()> categories{};
};

MemoryPeaks peaks_of(const MemoryLedger& ledger) {
  MemoryPeaks peaks{ledger.peak(), {}};
  for (std::size_t i = 0; i < peaks.categories.size(); ++i) {
    peaks.categories.at(i) = ledger.peak(static_cast<MemoryCategory>(i));
  }
  return peaks;
}

}  // namespace

Trainer::Trainer(Parts parts, Streams streams)
    : parts_(std::move(parts)),
      streams_(streams),
      total_steps_(count_steps(parts_.settings, parts_.training_data.steps_per_epoch())),
      micro_batch_tokens_(static_cast<std::size_t>(parts_.settings.micro_batch_size *
                                                   parts_.settings.data.block_size)),
      micro_batches_(static_cast<std::size_t>(parts_.settings.accumulation_steps)) {}

bool Trainer::agreed_to_stop() {
  const std::vector<std::uint8_t> votes = comm::gather_values<std::uint8_t>(
      parts_.stop_requested() ? 1 : 0, parts_.communicator, streams_.communication);
  return std::any_of(votes.begin(), votes.end(), [](std::uint8_t vote) { return vote != 0; });
}

data::StepBatches Trainer::empty_batches() const {
  const std::size_t micro_steps = micro_batches_.size();
  return {std::vector<std::int32_t>(micro_steps * micro_batch_tokens_),
          std::vector<std::int32_t>(micro_steps * micro_batch_tokens_),
          std::vector<std::int64_t>(micro_steps)};
}

/// Runs on the prefetching thread; `step` counts from 0.
void Trainer::load(std::int64_t step, data::StepBatches& batches) const {
  const profile::Recording recording(parts_.timeline, profile::Lane::data, profile::Activity::load,
                                     step + 1);
  for (std::size_t i = 0; i < batches.first_samples.size(); ++i) {
    const std::size_t begin = i * micro_batch_tokens_;
    batches.first_samples[i] =
        parts_.training_data.fill(step, static_cast<std::int64_t>(i),
                                  std::span(batches.tokens).subspan(begin, micro_batch_tokens_),
                                  std::span(batches.labels).subspan(begin, micro_batch_tokens_));
  }
}

std::span<const MicroBatch> Trainer::micro_batches(const data::StepBatches& batches) {
  for (std::size_t i = 0; i < micro_batches_.size(); ++i) {
    const std::size_t begin = i * micro_batch_tokens_;
    micro_batches_[i] = {std::span(batches.tokens).subspan(begin, micro_batch_tokens_),
                         std::span(batches.labels).subspan(begin, micro_batch_tokens_),
                         batches.first_samples[i]};
  }
  return micro_batches_;
}

StepResult Trainer::take_step(std::int64_t step,
                              double learning_rate,
                              data::BatchPrefetcher& batches) {
  const data::StepBatches* loaded = nullptr;
  {
    const profile::Recording recording(parts_.timeline, profile::Lane::compute,
                                       profile::Activity::wait);
    loaded = &batches.take(step - 1);
  }
  return parts_.engine.train_step({step, learning_rate, micro_batches(*loaded)});
}

Trainer::Outcome Trainer::run() {
  started_at_seconds_ = reported_at_seconds_ = parts_.clock.now_seconds();
  const config::TrainSettings& settings = parts_.settings;
  data::BatchPrefetcher batches(
      [this](std::int64_t step, data::StepBatches& target) { load(step, target); }, total_steps_,
      empty_batches());
  for (std::int64_t step = 1; step <= total_steps_; ++step) {
    if (parts_.timeline != nullptr) parts_.timeline->begin_step(step);
    if (agreed_to_stop()) return {step - 1, true};
    const double rate =
        optim::learning_rate(settings.schedule, settings.optimizer.learning_rate, step);
    const StepResult result = take_step(step, rate, batches);
    if (parts_.timeline != nullptr) parts_.timeline->end_step();
    report(step, rate, result);
    if (step != total_steps_ && due(step, settings.output.eval_steps)) evaluate(step);
  }
  evaluate(total_steps_);
  return {total_steps_, false};
}

monitor::StepMetrics Trainer::measure(std::int64_t step) {
  const config::TrainSettings& settings = parts_.settings;
  const std::int64_t step_tokens = settings.train_batch_size * settings.data.block_size;
  monitor::StepMetrics metrics;
  metrics.step = step;
  metrics.epoch =
      static_cast<double>(step) / static_cast<double>(parts_.training_data.steps_per_epoch());
  metrics.tokens = step * step_tokens;
  const double now = parts_.clock.now_seconds();
  metrics.step_seconds = (now - reported_at_seconds_) / static_cast<double>(step - reported_step_);
  metrics.tokens_per_second = static_cast<double>(step_tokens) / metrics.step_seconds;
  metrics.model_tflops =
      metrics.tokens_per_second * parts_.model.flops_per_token(settings.data.block_size) / 1e12;
  metrics.planned_categories = parts_.planned_memory;
  reported_step_ = step;
  reported_at_seconds_ = now;
  for (const MemoryPeaks& rank : comm::gather_values(peaks_of(parts_.device_memory),
                                                     parts_.communicator, streams_.communication)) {
    if (rank.total < metrics.memory[static_cast<std::size_t>(MemoryTier::device)]) continue;
    metrics.memory[static_cast<std::size_t>(MemoryTier::device)] = rank.total;
    metrics.device_categories = rank.categories;
  }
  return metrics;
}

void Trainer::report(std::int64_t step, double learning_rate, const StepResult& result) {
  const bool edge = step == 1 || step == total_steps_;
  const bool logged = edge || due(step, parts_.settings.output.logging_steps);
  const bool printed = parts_.settings.steps_per_print > 0
                           ? edge || due(step, parts_.settings.steps_per_print)
                           : logged;
  if (!logged && !printed) return;
  monitor::StepMetrics metrics = measure(step);
  metrics.loss = result.loss;
  metrics.learning_rate = learning_rate;
  metrics.gradient_norm = result.gradient_norm;
  const std::string times = printed ? describe_times() : "";
  if (parts_.metrics == nullptr) return;
  if (logged) parts_.metrics->write(metrics);
  if (!printed) return;
  const double seconds_per_step =
      (parts_.clock.now_seconds() - started_at_seconds_) / static_cast<double>(step);
  parts_.say(monitor::progress_line(
                 {.step = step,
                  .steps = total_steps_,
                  .loss = metrics.loss,
                  .learning_rate = metrics.learning_rate,
                  .gradient_norm = metrics.gradient_norm,
                  .tokens_per_second = metrics.tokens_per_second,
                  .seconds_left = seconds_per_step * static_cast<double>(total_steps_ - step)}) +
             times);
}

/// Where the time of the last step went, as a mean over the ranks; empty without a timeline.
std::string Trainer::describe_times() {
  if (parts_.timeline == nullptr) return "";
  const profile::Ring<profile::StepTimes>& steps = parts_.timeline->steps();
  profile::StepTimes sum;
  for (const profile::StepTimes& rank : comm::gather_values(
           steps[steps.pushed() - 1], parts_.communicator, streams_.communication)) {
    sum += rank;
  }
  return " | " + profile::describe(sum, parts_.communicator.size());
}

void Trainer::evaluate(std::int64_t step) {
  if (parts_.validation_data == nullptr) return;
  const double begin = parts_.clock.now_seconds();
  std::vector<std::int32_t> tokens(micro_batch_tokens_);
  std::vector<std::int32_t> labels(micro_batch_tokens_);
  model::LossSum own;
  for (std::int64_t batch = 0; batch < parts_.validation_data->batches(); ++batch) {
    parts_.validation_data->fill(batch, tokens, labels);
    const model::LossSum loss = parts_.engine.evaluate({tokens, labels, 0});
    own.sum += loss.sum;
    own.labels += loss.labels;
  }
  model::LossSum total;
  for (const model::LossSum& rank :
       comm::gather_values(own, parts_.communicator, streams_.communication)) {
    total.sum += rank.sum;
    total.labels += rank.labels;
  }
  // Evaluation is not training time.
  const double spent = parts_.clock.now_seconds() - begin;
  reported_at_seconds_ += spent;
  started_at_seconds_ += spent;
  if (parts_.metrics == nullptr) return;
  const monitor::EvalMetrics metrics{step, total.sum / static_cast<double>(total.labels)};
  parts_.metrics->write(metrics);
  parts_.say(fmt::format("step {}/{} | held-out loss {:.4f} | perplexity {:.3f}", step,
                         total_steps_, metrics.loss, std::exp(metrics.loss)));
}

}  // namespace dstrain::engine
