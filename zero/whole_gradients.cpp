#include "zero/whole_gradients.h"

namespace dstrain::zero {

Bytes WholeGradients::bytes(const FlatLayout& layout) {
  std::int64_t numel = 0;
  for (const Segment& segment : layout.segments()) numel += segment.numel;
  return numel * size_of(DType::f32);
}

WholeGradients::WholeGradients(const FlatLayout& layout,
                               Result result,
                               std::span<const MemoryTier> homes,
                               Communication communication,
                               Memory memory,
                               StreamView stream)
    : layout_(layout),
      result_(result),
      communication_(communication),
      memory_(bytes(layout), memory.gradients, stream),
      offloaded_(layout, {homes, true}, memory.offloaded, stream),
      pending_(layout),
      targets_(layout) {
  Bytes next = 0;
  for (const Segment& segment : layout.segments()) {
    segments_.push_back(memory_.block().cut(next, DType::f32, {segment.numel}));
    next += segments_.back().bytes();
  }
}

void WholeGradients::begin(engine::MicroStep micro_step) {
  micro_step_ = micro_step;
  pending_.reset();
  if (micro_step.first()) targets_.reset();
}

std::span<const model::GradientTarget> WholeGradients::targets(int part, StreamView stream) {
  if (micro_step_.first()) {
    for (const int index : layout_.part_segments(part)) {
      zero_padding(layout_, layout_.segment(index), segments_[static_cast<std::size_t>(index)],
                   stream);
    }
  }
  return targets_.of(part, segments_);
}

void WholeGradients::reduce(int part, StreamView stream) {
  const std::span<const int> complete = pending_.complete(part);
  if (!micro_step_.last()) return;
  communication_.follow(stream);
  comm::Communicator& communicator = communication_.communicator();
  for (const int index : complete) {
    const TensorView whole = segments_[static_cast<std::size_t>(index)];
    if (result_ == Result::whole) {
      communicator.all_reduce(whole, communication_.stream());
    } else {
      communicator.reduce_scatter(whole, own(index), communication_.stream());
    }
  }
}

TensorView WholeGradients::own(int segment) const {
  if (const TensorView elsewhere = offloaded_.of(segment); !elsewhere.empty()) return elsewhere;
  const std::int64_t shard = layout_.segment(segment).shard_numel;
  return segments_[static_cast<std::size_t>(segment)].part(communication_.rank() * shard, {shard});
}

TensorView WholeGradients::updated(int segment) const {
  return result_ == Result::whole ? segments_[static_cast<std::size_t>(segment)] : own(segment);
}

}  // namespace dstrain::zero
