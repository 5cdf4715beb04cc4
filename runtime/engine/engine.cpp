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

/// Per unit, the part without its tiles.
std::vector<model::PartId> own_parts(const model::Model& model) {
  std::vector<model::PartId> own;
  const auto parts = model.parts();
  for (const model::PartId part : parts.ids()) {
    if (!parts[part].is_tile()) own.push_back(part);
  }
  return own;
}

/// The tiles of a unit, which are the parts after `own`.
class StoredTiles final : public model::TileLender {
 public:
  StoredTiles(const Engine::Inputs& inputs, model::PartId own, StreamView stream)
      : store_(inputs.store), timeline_(inputs.timeline), own_(own), stream_(stream) {}
  TensorView acquire(std::size_t tile) override {
    const profile::Recording waiting = wait();
    return store_.acquire(part_of(tile), stream_).front();
  }
  void release(std::size_t tile) override { store_.release(part_of(tile), stream_); }
  model::GradientTarget gradients(std::size_t tile) override {
    const profile::Recording waiting = wait();
    return store_.gradients(part_of(tile), stream_).front();
  }
  void reduce(std::size_t tile) override {
    const profile::Recording waiting = wait();
    store_.reduce(part_of(tile), stream_);
  }

 private:
  /// Records work of the store for a tile as waiting, not as work of the unit.
  [[nodiscard]] profile::Recording wait() const {
    return {timeline_, stream_, profile::Lane::compute, profile::Activity::wait};
  }
  [[nodiscard]] model::PartId part_of(std::size_t tile) const {
    return next_id(own_, 1 + static_cast<int>(tile));
  }

  ParameterStore& store_;
  profile::Timeline* timeline_;
  model::PartId own_;
  StreamView stream_;
};

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

/// Values that the calls of one micro-batch share.
struct Engine::Context {
  model::BatchShape shape;
  std::size_t micro_batch = 0;
  bool training = false;
  TensorView logits{};
};

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
      own_part_(own_parts(inputs.model)),
      inference_parts_(parts_of(inference_)) {
  if (options.mode == FrameMode::inference) return;
  training_.emplace(inputs.model, Frame::Options{options.shape, options.mode},
                    Frame::Blocks{memory_.block(), host_memory_.block()});
  training_parts_ = parts_of(*training_);
  if (options.mode == FrameMode::host_checkpointing) {
    copies_.emplace(streams, inputs.timeline);
  }
}

std::vector<model::PartId> Engine::parts_of(const Frame& frame) const {
  std::vector<model::PartId> parts;
  for (const FrameCall& call : frame.calls()) {
    const auto unit = static_cast<std::size_t>(call.unit);
    const model::PartId own = own_part_[unit];
    const auto tiles = static_cast<int>(inputs_.model.units[unit]->spec().tiles.size());
    parts.push_back(own);
    if (call.pass == Pass::forward || call.recompute) {
      for (int tile = 1; tile <= tiles; ++tile) parts.push_back(next_id(own, tile));
    }
    if (call.pass == Pass::backward) {
      for (int tile = tiles; tile > 0; --tile) parts.push_back(next_id(own, tile));
    }
  }
  return parts;
}

model::UnitCall Engine::unit_call(const FrameCall& call, const Context& context) const {
  model::UnitCall unit;
  unit.shape = context.shape;
  unit.dropout = {.seed = options_.seed,
                  .unit = static_cast<std::uint32_t>(call.unit),
                  .training = context.training};
  block_.show(context.micro_batch, unit);
  unit.inputs = call.inputs;
  unit.outputs = call.outputs;
  unit.saved = call.saved;
  unit.workspace = call.workspace;
  unit.output_gradients = call.output_gradients;
  unit.input_gradients = call.input_gradients;
  unit.logits = context.logits;
  return unit;
}

void Engine::run_call(const FrameCall& call, const Context& context) {
  const model::Unit& unit = *inputs_.model.units[static_cast<std::size_t>(call.unit)];
  const model::PartId part = own_part_[static_cast<std::size_t>(call.unit)];
  const StreamView stream = streams_.compute;
  StoredTiles tiles(inputs_, part, stream);
  model::UnitCall arguments = unit_call(call, context);
  arguments.parameters = inputs_.store.acquire(part, stream);
  arguments.tiles = &tiles;
  if (call.pass == Pass::forward || call.recompute) {
    const profile::Recording recording(
        inputs_.timeline, stream, profile::Lane::compute,
        call.recompute ? profile::Activity::recompute : profile::Activity::forward, call.unit);
    begin_work(inputs_.progress, call.recompute ? Work::recompute : Work::forward, call.unit);
    unit.forward(arguments, stream);
  }
  if (call.pass == Pass::backward) {
    arguments.parameter_gradients = inputs_.store.gradients(part, stream);
    const profile::Recording recording(inputs_.timeline, stream, profile::Lane::compute,
                                       profile::Activity::backward, call.unit);
    begin_work(inputs_.progress, Work::backward, call.unit);
    unit.backward(arguments, stream);
  }
  inputs_.store.release(part, stream);
  if (call.pass == Pass::backward) inputs_.store.reduce(part, stream);
}

void Engine::run(const Frame& frame, const Context& context) {
  FrameCopies* const copies = context.training && copies_ ? &*copies_ : nullptr;
  for (const FrameCall& call : frame.calls()) {
    if (copies != nullptr) copies->begin(call);
    run_call(call, context);
    if (copies != nullptr) copies->end(call);
  }
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
    run(training_.value(), {.shape = options_.shape, .micro_batch = index, .training = true});
  }
  decide();
}

double Engine::run_micro_batch(const MicroBatch& batch, std::int64_t index) {
  numbers_.adds = index > 0;
  block_.fill({&batch, 1}, numbers_, streams_.compute);
  const double before = numbers_.adds ? block_.loss(streams_.compute) : 0;
  inputs_.store.begin({index, micro_batches_});
  run(training_.value(), {.shape = options_.shape, .training = true});
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
  run(inference_, {.shape = inference_shape_});
  return block_.loss(streams_.compute);
}

void Engine::logits(const MicroBatch& batch, TensorView logits) {
  inputs_.store.expect(inference_parts_, 1);
  block_.fill({&batch, 1}, {}, streams_.compute);
  run(inference_, {.shape = inference_shape_, .logits = logits});
  streams_.compute.synchronize();
}

}  // namespace dstrain::engine
