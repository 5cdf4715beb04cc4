#include "runtime/engine/frame_runner.h"

#include "runtime/profile/recording.h"

namespace dstrain::engine {
namespace {

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
  StoredTiles(const EngineInputs& inputs, model::PartId own, StreamView stream)
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

}  // namespace

FrameRunner::FrameRunner(const EngineInputs& inputs, StreamView stream)
    : inputs_(inputs), stream_(stream), own_part_(own_parts(inputs.model)) {}

std::vector<model::PartId> FrameRunner::parts_of(const Frame& frame) const {
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

void FrameRunner::run_call(const FrameCall& call, model::UnitCall arguments) const {
  const model::PartId part = own_part_[static_cast<std::size_t>(call.unit)];
  StoredTiles tiles(inputs_, part, stream_);
  arguments.dropout.unit = static_cast<std::uint32_t>(call.unit);
  arguments.inputs = call.inputs;
  arguments.outputs = call.outputs;
  arguments.saved = call.saved;
  arguments.workspace = call.workspace;
  arguments.output_gradients = call.output_gradients;
  arguments.input_gradients = call.input_gradients;
  arguments.parameters = inputs_.store.acquire(part, stream_);
  arguments.tiles = &tiles;
  if (call.pass == Pass::forward || call.recompute) {
    const profile::Recording recording(
        inputs_.timeline, stream_, profile::Lane::compute,
        call.recompute ? profile::Activity::recompute : profile::Activity::forward, call.unit);
    begin_work(inputs_.progress, call.recompute ? Work::recompute : Work::forward, call.unit);
    call.planned->forward(arguments, stream_);
  }
  if (call.pass == Pass::backward) {
    arguments.parameter_gradients = inputs_.store.gradients(part, stream_);
    const profile::Recording recording(inputs_.timeline, stream_, profile::Lane::compute,
                                       profile::Activity::backward, call.unit);
    begin_work(inputs_.progress, Work::backward, call.unit);
    call.planned->backward(arguments, stream_);
  }
  inputs_.store.release(part, stream_);
  if (call.pass == Pass::backward) inputs_.store.reduce(part, stream_);
}

void FrameRunner::run(const Frame& frame, const model::UnitCall& call, const Beside& beside) const {
  model::UnitCall arguments = call;
  for (const FrameCall& each : frame.calls()) {
    if (!beside.caches.empty()) {
      arguments.cache = &beside.caches[static_cast<std::size_t>(each.unit)];
    }
    if (beside.copies != nullptr) beside.copies->begin(each);
    run_call(each, arguments);
    if (beside.copies != nullptr) beside.copies->end(each);
  }
}

void FrameRunner::pass(std::span<const model::PartId> parts) const {
  for (const model::PartId part : parts) {
    inputs_.store.acquire(part, stream_);
    inputs_.store.release(part, stream_);
  }
}

}  // namespace dstrain::engine
