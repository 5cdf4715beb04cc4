#include "zero/sharded_gradients.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/add.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

/// Elements of a bucket for the own parts of units, or for tiles.
std::int64_t capacity(const FlatLayout& layout, std::int64_t bucket_numel, bool tiles) {
  std::int64_t total = 0;
  for (const model::PartId part : layout.parts()) {
    if (layout.is_tile(part) == tiles) total += own_numel(layout, part);
  }
  return std::max(largest_own_numel(layout, tiles), std::min(bucket_numel, total));
}

std::int64_t bucket_count(const ShardedGradients::Options& options) {
  return options.overlap ? 2 : 1;
}

Bytes bucket_bytes(const FlatLayout& layout, const ShardedGradients::Options& options) {
  const std::int64_t capacities =
      capacity(layout, options.bucket_numel, false) + capacity(layout, options.bucket_numel, true);
  return (bucket_count(options) * capacities + shared_numel(layout)) * size_of(DType::f32);
}

}  // namespace

Bytes ShardedGradients::buffer_bytes(const FlatLayout& layout,
                                     Options options,
                                     const config::StatePrecision& precision) {
  return bucket_bytes(layout, options) + GradientExchange::bytes(layout, precision, DType::f32);
}

ShardedGradients::ShardedGradients(RankShards& shards,
                                   Options options,
                                   Communication communication,
                                   OffloadedGradients* offloaded,
                                   MemoryResource& buffers,
                                   StreamView stream)
    : layout_(shards.layout()),
      shards_(shards),
      options_(options),
      communication_(communication),
      exchange_(layout_, shards.plan().precision, DType::f32, communication, buffers, stream),
      offloaded_(offloaded),
      bucket_memory_(bucket_bytes(layout_, options), buffers, stream),
      units_{.capacity = capacity(layout_, options.bucket_numel, false)},
      tiles_{.capacity = capacity(layout_, options.bucket_numel, true)},
      whole_(layout_.segments().size()),
      shared_reduced_(layout_.segments().size()),
      pending_(layout_),
      targets_(layout_) {
  cut_buckets();
}

void ShardedGradients::cut_buckets() {
  Bytes next = 0;
  const auto cut = [&](std::int64_t numel) {
    const TensorView front = bucket_memory_.block().cut(next, DType::f32, {numel});
    next += front.bytes();
    return front;
  };
  for (Buckets* const buckets : {&units_, &tiles_}) {
    for (std::int64_t i = 0; i < bucket_count(options_); ++i) {
      buckets->all.emplace_back().memory = cut(buckets->capacity);
    }
  }
  for (const SegmentId id : layout_.segments().ids()) {
    const Segment& segment = layout_.segment(id);
    if (segment.trainable && segment.shared) whole_[id] = cut(segment.numel);
  }
}

void ShardedGradients::begin(engine::MicroStep micro_step) {
  micro_step_ = micro_step;
  pending_.reset();
  parts_left_ = layout_.parts().size();
  targets_.reset();
  if (offloaded_ != nullptr) offloaded_->begin(micro_step);
}

void ShardedGradients::place(model::PartId part, StreamView stream) {
  Buckets& buckets = buckets_of(part);
  if (buckets.current().used + own_numel(layout_, part) > buckets.capacity) flush(buckets, stream);
  for (const SegmentId id : layout_.part_segments(part)) {
    const Segment& segment = layout_.segment(id);
    if (!segment.trainable) continue;
    TensorView& whole = whole_[id];
    if (segment.shared) {
      communication_.wait(shared_reduced_[id], stream);
    } else {
      whole = place_in_bucket(buckets.current(), segment.numel, stream);
    }
    zero_padding(layout_, segment, whole, stream);
  }
}

TensorView ShardedGradients::place_in_bucket(Bucket& bucket,
                                             std::int64_t numel,
                                             StreamView stream) {
  communication_.wait(bucket.emptied, stream);
  return bucket.memory.part(std::exchange(bucket.used, bucket.used + numel), {numel});
}

std::span<const model::GradientTarget> ShardedGradients::targets(model::PartId part,
                                                                 StreamView stream) {
  place(part, stream);
  return targets_.of(part, whole_);
}

void ShardedGradients::reduce(model::PartId part, StreamView stream) {
  Buckets& buckets = buckets_of(part);
  for (const SegmentId segment : pending_.complete(part)) {
    if (layout_.segment(segment).shared) {
      communication_.follow(stream);
      reduce_segment(segment);
      shared_reduced_[segment] = reduced();
    } else {
      buckets.current().complete.push_back(segment);
    }
  }
  --parts_left_;
  if (options_.bucket_numel == 0) flush(buckets, stream);
  if (parts_left_ > 0) return;
  flush(units_, stream);
  flush(tiles_, stream);
}

void ShardedGradients::flush(Buckets& buckets, StreamView stream) {
  Bucket& bucket = buckets.current();
  communication_.follow(stream);
  for (const SegmentId segment : bucket.complete) reduce_segment(segment);
  bucket.emptied = reduced();
  bucket.complete.clear();
  bucket.used = 0;
  buckets.filling = (buckets.filling + 1) % buckets.all.size();
}

/// The point from which on what was reduced so far may be overwritten.
Communication::Point ShardedGradients::reduced() const {
  return offloaded_ == nullptr ? communication_.now() : offloaded_->taken();
}

void ShardedGradients::reduce_segment(SegmentId segment) {
  const TensorView whole = whole_[segment];
  const TensorView shard = own(segment);
  const bool in_reach = !shard.empty() && shard.device() == whole.device();
  if (micro_step_.first() && in_reach) return exchange_.reduce_scatter(whole, shard);
  if (!in_reach) offloaded_->announce(segment);
  const TensorView sum = own_shard(layout_.segment(segment), shards_.rank(), whole);
  exchange_.reduce_scatter(whole, sum);
  in_reach ? ops::add(sum, shard, communication_.stream()) : offloaded_->take(segment, sum);
}

}  // namespace dstrain::zero
