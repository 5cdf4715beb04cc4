#include "zero/whole_gradients.h"

#include "zero/shard_slices.h"

namespace dstrain::zero {

Bytes WholeGradients::bytes(const FlatLayout& layout, DType kept) {
  std::int64_t numel = 0;
  for (const Segment& segment : layout.segments()) {
    if (segment.trainable) numel += segment.numel;
  }
  return numel * size_of(kept);
}

Bytes WholeGradients::buffer_bytes(const FlatLayout& layout,
                                   const config::StatePrecision& precision) {
  const Bytes staged = is_half(precision.gradients) ? GradientStaging::bytes(layout) : 0;
  return staged + GradientExchange::bytes(layout, precision, precision.gradients);
}

WholeGradients::WholeGradients(RankShards& shards,
                               Result result,
                               Communication communication,
                               OffloadedGradients* offloaded,
                               Memory memory,
                               StreamView stream)
    : layout_(shards.layout()),
      shards_(shards),
      result_(result),
      communication_(communication),
      exchange_(layout_,
                shards.plan().precision,
                shards.plan().precision.gradients,
                communication,
                memory.buffers,
                stream),
      offloaded_(offloaded),
      memory_(bytes(layout_, shards.plan().precision.gradients), memory.gradients, stream),
      pending_(layout_),
      targets_(layout_) {
  const DType kept = shards.plan().precision.gradients;
  if (is_half(kept)) staging_.emplace(layout_, memory.buffers, stream);
  Bytes next = 0;
  for (const Segment& segment : layout_.segments()) {
    TensorView& whole = segments_.emplace_back();
    if (!segment.trainable) continue;
    whole = memory_.block().cut(next, kept, {segment.numel});
    next += whole.bytes();
  }
}

void WholeGradients::begin(engine::MicroStep micro_step) {
  micro_step_ = micro_step;
  if (offloaded_ != nullptr) offloaded_->begin({});  // sums are taken once a step
  pending_.reset();
  if (micro_step.first() || staging_) targets_.reset();
}

std::span<const model::GradientTarget> WholeGradients::targets(model::PartId part,
                                                               StreamView stream) {
  if (staging_) {
    staging_->place(part, stream);
    return targets_.of(part, staging_->segments());
  }
  if (micro_step_.first()) {
    for (const SegmentId segment : layout_.part_segments(part)) {
      const TensorView& whole = segments_[segment];
      if (!whole.empty()) zero_padding(layout_, layout_.segment(segment), whole, stream);
    }
  }
  return targets_.of(part, segments_);
}

void WholeGradients::reduce(model::PartId part, StreamView stream) {
  const std::span<const SegmentId> complete = pending_.complete(part);
  if (staging_) keep(complete, stream);
  if (!micro_step_.last()) return;
  communication_.follow(stream);
  for (const SegmentId segment : complete) reduce_segment(segment);
}

void WholeGradients::keep(std::span<const SegmentId> complete, StreamView stream) {
  for (const SegmentId segment : complete) {
    const TensorView& kept = segments_[segment];
    staging_->keep(segment, kept, micro_step_.first(), stream);
  }
}

void WholeGradients::reduce_segment(SegmentId segment) {
  const TensorView whole = segments_[segment];
  if (result_ == Result::whole) return exchange_.all_reduce(whole);
  const TensorView shard = own(segment);
  if (shard.device() == whole.device()) return exchange_.reduce_scatter(whole, shard);
  const TensorView sum = own_shard(layout_.segment(segment), shards_.rank(), whole);
  exchange_.reduce_scatter(whole, sum);
  offloaded_->take(segment, sum);
}

TensorView WholeGradients::own(SegmentId segment) const {
  if (const TensorView elsewhere = shards_.gradients(segment); !elsewhere.empty()) return elsewhere;
  const TensorView& whole = segments_[segment];
  return whole.empty() ? whole : own_shard(layout_.segment(segment), shards_.rank(), whole);
}

TensorView WholeGradients::updated(SegmentId segment) const {
  return result_ == Result::whole ? segments_[segment] : own(segment);
}

}  // namespace dstrain::zero
