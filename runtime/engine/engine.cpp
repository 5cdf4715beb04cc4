#include "runtime/engine/engine.h"

#include <algorithm>

#include "runtime/numeric/philox.h"
#include "runtime/ops/dropout_site.h"
#include "runtime/profile/recording.h"

namespace dstrain::engine {

namespace {

/// The key of the stochastic rounding of an update.
std::int64_t rounding_key(std::uint64_t seed, std::int64_t update) {
  const auto words = philox({seed, RandomPurpose::rounding, 0, static_cast<std::uint64_t>(update)});
  return static_cast<std::int64_t>((std::uint64_t{words[1]} << 32U) | words[0]);
}

StepBlock::Options block_options(const model::Model& model, const Engine::Options& options) {
  const model::BatchShape inference = options.inference_shape.value_or(options.shape);
  const std::int64_t micro_steps = options.mode == FrameMode::inference ? 0 : options.micro_steps;
  const auto most = [&](auto count_of) {
    return std::max(count_of(inference), micro_steps * count_of(options.shape));
  };
  using model::BatchShape;
  return {.rows = most([](const BatchShape& shape) { return shape.rows(); }),
          .source_rows =
              most([](const BatchShape& shape) { return shape.on(model::Axis::source).rows(); }),
          .sources =
              most([](const BatchShape& shape) { return shape.source > 0 ? shape.sequences : 0; }),
          .documents = options.documents,
          .features = model.features(),
          .targets = model.loss().targets,
          .micro_batches = options.micro_steps,
          .ranks = options.ranks,
          .parameter_groups = options.parameter_groups};
}

/// Bytes of the frames only.
FrameBytes frame_bytes(const model::Model& model, const Engine::Options& options) {
  const model::BatchShape shape = options.inference_shape.value_or(options.shape);
  const FrameBytes inference = Frame::bytes(model, {shape, FrameMode::inference});
  if (options.mode == FrameMode::inference) return inference;
  const FrameBytes bytes = Frame::bytes(model, {options.shape, options.mode});
  return {std::max(inference.device, bytes.device), bytes.host};
}

}  // namespace

FrameBytes Engine::activation_bytes(const model::Model& model, const Options& options) {
  const FrameBytes frames = frame_bytes(model, options);
  const FrameBytes block = StepBlock::bytes(block_options(model, options), model.device);
  return {frames.device + block.device, frames.host + block.host};
}

Engine::Engine(Inputs inputs, Options options, Streams streams)
    : inputs_(inputs),
      options_(options),
      inference_shape_(options.inference_shape.value_or(options.shape)),
      streams_(streams),
      block_(block_options(inputs.model, options),
             {inputs.activations, inputs.host_activations},
             streams.compute),
      memory_(frame_bytes(inputs.model, options).device, inputs.activations, streams.compute),
      host_memory_(
          frame_bytes(inputs.model, options).host, inputs.host_activations, streams.compute),
      inference_(inputs.model, {inference_shape_, FrameMode::inference}, {memory_.block()}),
      runner_(inputs, streams.compute),
      inference_parts_(runner_.parts_of(inference_)) {
  if (options.mode == FrameMode::inference) return;
  training_.emplace(inputs.model, Frame::Options{options.shape, options.mode},
                    Frame::Blocks{memory_.block(), host_memory_.block()});
  training_parts_ = runner_.parts_of(*training_);
  if (options.mode == FrameMode::host_checkpointing) {
    copies_.emplace(streams, inputs.timeline);
  }
}

model::UnitCall Engine::call_of(std::size_t micro_batch, model::BatchShape shape) const {
  model::UnitCall call;
  call.shape = shape;
  call.dropout.seed = options_.seed;
  block_.show(micro_batch, call);
  return call;
}

void Engine::train(std::size_t micro_batch) {
  model::UnitCall call = call_of(micro_batch, options_.shape);
  call.dropout.training = true;
  runner_.run(training_.value(), call, {.copies = copies_ ? &*copies_ : nullptr});
}

void Engine::begin_step(const StepInput& input, std::int64_t micro_batches) {
  if (input.labels == 0) {
    fail(ErrorCode::input, "step {}: the batch has no label that counts", input.step);
  }
  micro_batches_ = micro_batches;
  const std::int64_t rounding = rounding_key(options_.seed, input.update.number);
  inputs_.store.expect(training_parts_, micro_batches_);
  const std::span<const rules::ScalarValues> scalars = inputs_.store.begin_step(
      {.update = input.update, .loss_scale = input.loss_scale, .rounding = rounding});
  numbers_ = {.step = input.step,
              .labels = input.labels,
              .loss_scale = input.loss_scale,
              .gradient_factor = options_.gradient_factor,
              .rounding = rounding,
              .scalars = scalars};
}

void Engine::accumulate(const StepInput& input) {
  for (const MicroBatch& batch : input.micro_batches) {
    const std::int64_t samples = batch.first_sample + options_.shape.sequences;
    DSTRAIN_CHECK(samples <= ops::dropout_samples, "a global batch of {} samples", samples);
  }
  MicroStep micro_step{0, std::ssize(input.micro_batches)};
  begin_step(input, micro_step.count);
  {  // until the device has what was filled in before
    const profile::Recording waiting(profile::beside_device(inputs_.timeline), profile::Lane::host,
                                     profile::Activity::wait);
    block_.fill(input.micro_batches, numbers_, streams_.compute);
  }
  for (; micro_step.index < micro_step.count; ++micro_step.index) {
    inputs_.store.begin(micro_step);
    const auto index = static_cast<std::size_t>(micro_step.index);
    train(index);
  }
  decide();
}

double Engine::run_micro_batch(const MicroBatch& batch, std::int64_t index) {
  numbers_.adds = index > 0;
  block_.fill({&batch, 1}, numbers_, streams_.compute);
  const double before = numbers_.adds ? block_.loss(streams_.compute) : 0;
  inputs_.store.begin({index, micro_batches_});
  train(0);
  return block_.loss(streams_.compute) - before;
}

void Engine::end_step(std::int64_t labels) {
  if (labels == 0) {
    fail(ErrorCode::input, "step {}: no label of its batches counts", numbers_.step);
  }
  // The gradients are scaled for the labels that were expected.
  numbers_.loss_scale *= static_cast<double>(labels) / static_cast<double>(numbers_.labels);
  numbers_.labels = labels;
  numbers_.adds = true;
  block_.fill({}, numbers_, streams_.compute);
  decide();
}

void Engine::decide() {
  begin_work(inputs_.progress, Work::norm);
  inputs_.store.gather_totals(block_.own_total(), block_.totals(), streams_.compute);
  block_.decide(numbers_.step, options_.gradient_clipping, streams_.compute);
}

void Engine::update() {
  begin_work(inputs_.progress, Work::update);
  inputs_.store.step(block_.tensors(), streams_.compute);
}

std::optional<std::string> Engine::last_not_finite() {
  return inputs_.store.last_not_finite(block_.own_total().part(0, {ExactSum::numel}));
}

double Engine::evaluate(const MicroBatch& batch) {
  inputs_.store.expect(inference_parts_, 1);
  block_.fill({&batch, 1}, {}, streams_.compute);
  runner_.run(inference_, call_of(0, inference_shape_), {});
  return block_.loss(streams_.compute);
}

void Engine::logits(const MicroBatch& batch, TensorView logits) {
  inputs_.store.expect(inference_parts_, 1);
  block_.fill({&batch, 1}, {}, streams_.compute);
  model::UnitCall call = call_of(0, inference_shape_);
  call.logits = logits;
  runner_.run(inference_, call, {});
  streams_.compute.synchronize();
}

}  // namespace dstrain::engine
