#include "zero/whole_gradients.h"

#include "zero/shard_slices.h"

namespace dstrain::zero {

Bytes WholeGradients::bytes(const FlatLayout& layout) {
  std::int64_t numel = 0;
  for (const Segment& segment : layout.segments()) {
    if (segment.trainable) numel += segment.numel;
  }
  return numel * size_of(DType::f32);
}

WholeGradients::WholeGradients(RankShards& shards,
                               Result result,
                               Communication communication,
                               OffloadedGradients* offloaded,
                               MemoryResource& memory,
                               StreamView stream)
    : layout_(shards.layout()),
      shards_(shards),
      result_(result),
      communication_(communication),
      offloaded_(offloaded),
      memory_(bytes(layout_), memory, stream),
      pending_(layout_),
      targets_(layout_) {
  Bytes next = 0;
  for (const Segment& segment : layout_.segments()) {
    TensorView& whole = segments_.emplace_back();
    if (!segment.trainable) continue;
    whole = memory_.block().cut(next, DType::f32, {segment.numel});
    next += whole.bytes();
  }
}

void WholeGradients::begin(engine::MicroStep micro_step) {
  micro_step_ = micro_step;
  if (offloaded_ != nullptr) offloaded_->begin({});  // sums are taken once a step
  pending_.reset();
  if (micro_step.first()) targets_.reset();
}

std::span<const model::GradientTarget> WholeGradients::targets(int part, StreamView stream) {
  if (micro_step_.first()) {
    for (const int index : layout_.part_segments(part)) {
      const TensorView& whole = segments_[static_cast<std::size_t>(index)];
      if (!whole.empty()) zero_padding(layout_, layout_.segment(index), whole, stream);
    }
  }
  return targets_.of(part, segments_);
}

void WholeGradients::reduce(int part, StreamView stream) {
  const std::span<const int> complete = pending_.complete(part);
  if (!micro_step_.last()) return;
  communication_.follow(stream);
  for (const int index : complete) reduce_segment(index);
}

void WholeGradients::reduce_segment(int index) {
  comm::Communicator& communicator = communication_.communicator();
  const StreamView stream = communication_.stream();
  const TensorView whole = segments_[static_cast<std::size_t>(index)];
  if (result_ == Result::whole) return communicator.all_reduce(whole, stream);
  const TensorView shard = own(index);
  if (shard.device() == whole.device()) return communicator.reduce_scatter(whole, shard, stream);
  const TensorView sum = own_part(layout_.segment(index), shards_.rank(), whole);
  communicator.reduce_scatter(whole, sum, stream);
  offloaded_->take(index, sum);
}

TensorView WholeGradients::own(int segment) const {
  if (const TensorView elsewhere = shards_.gradients(segment); !elsewhere.empty()) return elsewhere;
  const TensorView& whole = segments_[static_cast<std::size_t>(segment)];
  return whole.empty() ? whole : own_part(layout_.segment(segment), shards_.rank(), whole);
}

TensorView WholeGradients::updated(int segment) const {
  return result_ == Result::whole ? segments_[static_cast<std::size_t>(segment)] : own(segment);
}

}  // namespace dstrain::zero
