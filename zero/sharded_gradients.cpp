#include "zero/sharded_gradients.h"

#include <algorithm>

namespace dstrain::zero {
namespace {

/// Elements of a unit's own segments that pass through the bucket.
std::int64_t bucket_share(const FlatLayout& layout, int unit) {
  std::int64_t numel = 0;
  for (const int index : layout.unit_segments(unit)) {
    if (!layout.segment(index).shared) numel += layout.segment(index).numel;
  }
  return numel;
}

std::int64_t capacity(const FlatLayout& layout, std::int64_t bucket_numel) {
  std::int64_t largest = 0;
  std::int64_t total = 0;
  for (int unit = 0; unit < layout.units(); ++unit) {
    largest = std::max(largest, bucket_share(layout, unit));
    total += bucket_share(layout, unit);
  }
  return std::max(largest, std::min(bucket_numel, total));
}

std::int64_t shared_numel(const FlatLayout& layout) {
  std::int64_t numel = 0;
  for (const Segment& segment : layout.segments()) numel += segment.shared ? segment.numel : 0;
  return numel;
}

}  // namespace

Bytes ShardedGradients::bucket_bytes(const FlatLayout& layout, Options options) {
  const std::int64_t buckets = options.overlap ? 2 : 1;
  return (buckets * capacity(layout, options.bucket_numel) + shared_numel(layout)) *
         size_of(DType::f32);
}

ShardedGradients::ShardedGradients(const FlatLayout& layout,
                                   Options options,
                                   Communication communication,
                                   Memory memory,
                                   StreamView stream)
    : layout_(layout),
      options_(options),
      communication_(communication),
      shards_(layout, {options.homes, false}, memory.gradients, stream),
      offloaded_(layout, {options.homes, true}, memory.offloaded, stream),
      bucket_memory_(bucket_bytes(layout, options), memory.buffers, stream),
      bucket_capacity_(capacity(layout, options.bucket_numel)),
      whole_(layout.segments().size()),
      buckets_(options.overlap ? 2 : 1),
      shared_reduced_(layout.segments().size()),
      pending_(layout),
      written_(layout.parameters().size(), false) {
  DSTRAIN_CHECK(options.sink != nullptr || std::ranges::count(options.homes, MemoryTier::nvme) == 0,
                "nothing takes the gradients to the disk");
  std::span<float> shared = bucket_memory_.as<float>();
  for (Bucket& bucket : buckets_) {
    bucket.memory = shared.first(static_cast<std::size_t>(bucket_capacity_));
    shared = shared.subspan(static_cast<std::size_t>(bucket_capacity_));
  }
  for (std::size_t index = 0; index < layout.segments().size(); ++index) {
    const Segment& segment = layout.segments()[index];
    if (!segment.shared) continue;
    whole_[index] = shared.first(static_cast<std::size_t>(segment.numel));
    shared = shared.subspan(static_cast<std::size_t>(segment.numel));
  }
}

void ShardedGradients::begin(engine::MicroStep micro_step) {
  micro_step_ = micro_step;
  pending_.reset();
  units_left_ = layout_.units();
  std::fill(written_.begin(), written_.end(), false);
  if (GradientSink* const sink = options_.sink) {
    communication_.stream().launch([sink, micro_step] { sink->begin(micro_step); });
  }
}

void ShardedGradients::place(int unit, StreamView stream) {
  if (buckets_[filling_].used + bucket_share(layout_, unit) > bucket_capacity_) flush(stream);
  for (const int index : layout_.unit_segments(unit)) {
    const Segment& segment = layout_.segment(index);
    std::span<float>& whole = whole_[static_cast<std::size_t>(index)];
    if (segment.shared) {
      communication_.wait(shared_reduced_[static_cast<std::size_t>(index)], stream);
    } else {
      whole = place_in_bucket(segment.numel, stream);
    }
    stream.launch([this, &segment, values = whole] { zero_padding(layout_, segment, values); });
  }
}

std::span<float> ShardedGradients::place_in_bucket(std::int64_t numel, StreamView stream) {
  Bucket& bucket = buckets_[filling_];
  communication_.wait(bucket.emptied, stream);
  const auto offset = static_cast<std::size_t>(bucket.used);
  bucket.used += numel;
  return bucket.memory.subspan(offset, static_cast<std::size_t>(numel));
}

std::span<const model::GradientTarget> ShardedGradients::targets(int unit, StreamView stream) {
  place(unit, stream);
  fill_targets(layout_, unit, whole_, written_, targets_);
  return targets_;
}

void ShardedGradients::reduce(int unit, StreamView stream) {
  for (const int index : pending_.complete(unit)) {
    if (layout_.segment(index).shared) {
      communication_.follow(stream);
      reduce_segment(index);
      shared_reduced_[static_cast<std::size_t>(index)] = communication_.now();
    } else {
      buckets_[filling_].complete.push_back(index);
    }
  }
  --units_left_;
  if (units_left_ == 0 || options_.bucket_numel == 0) flush(stream);
}

void ShardedGradients::flush(StreamView stream) {
  Bucket& bucket = buckets_[filling_];
  communication_.follow(stream);
  for (const int index : bucket.complete) reduce_segment(index);
  bucket.emptied = communication_.now();
  bucket.complete.clear();
  bucket.used = 0;
  filling_ = (filling_ + 1) % buckets_.size();
}

void ShardedGradients::reduce_segment(int index) {
  const std::span<float> whole = whole_[static_cast<std::size_t>(index)];
  const std::span<float> shard = own(index);
  const std::int64_t shard_numel = layout_.segment(index).shard_numel;
  const TensorView source(whole, {layout_.segment(index).numel});
  comm::Communicator& communicator = communication_.communicator();
  if (micro_step_.first() && !shard.empty()) {
    communicator.reduce_scatter(source, {shard, {shard_numel}}, communication_.stream());
    return;
  }
  const std::span<float> sum =
      whole.subspan(static_cast<std::size_t>(communication_.rank() * shard_numel),
                    static_cast<std::size_t>(shard_numel));
  communicator.reduce_scatter(source, {sum, {shard_numel}}, communication_.stream());
  communication_.stream().launch([shard, sum, index, sink = options_.sink] {
    if (shard.empty()) {
      sink->put(index, sum);
    } else {
      add_to(shard, sum);
    }
  });
}

std::span<float> ShardedGradients::own(int segment) const {
  const std::span<float> here = shards_.of(segment);
  return here.empty() ? offloaded_.of(segment) : here;
}

}  // namespace dstrain::zero
