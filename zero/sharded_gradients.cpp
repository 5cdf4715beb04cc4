#include "zero/sharded_gradients.h"

#include <algorithm>

#include "runtime/base/parallel_for.h"

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

void add_to(std::span<float> sum, std::span<const float> values) {
  constexpr std::int64_t chunk = 1 << 16;
  const auto numel = static_cast<std::int64_t>(sum.size());
  parallel_for((numel + chunk - 1) / chunk, [&](std::int64_t i) {
    float* const target = sum.data() + i * chunk;
    const float* const source = values.data() + i * chunk;
    const std::int64_t count = std::min(chunk, numel - i * chunk);
    for (std::int64_t k = 0; k < count; ++k) target[k] += source[k];
  });
}

}  // namespace

Bytes ShardedGradients::shard_bytes(const FlatLayout& layout) {
  std::int64_t numel = 0;
  for (const Segment& segment : layout.segments()) numel += segment.shard_numel;
  return numel * size_of(DType::f32);
}

Bytes ShardedGradients::bucket_bytes(const FlatLayout& layout, Options options) {
  return (capacity(layout, options.bucket_numel) + shared_numel(layout)) * size_of(DType::f32);
}

ShardedGradients::ShardedGradients(const FlatLayout& layout,
                                   Options options,
                                   comm::Communicator& communicator,
                                   Memory memory,
                                   StreamView stream)
    : layout_(layout),
      options_(options),
      communicator_(communicator),
      shard_memory_(shard_bytes(layout), memory.gradients, stream),
      bucket_memory_(bucket_bytes(layout, options), memory.buffers, stream),
      bucket_capacity_(capacity(layout, options.bucket_numel)),
      whole_(layout.segments().size()),
      pending_(layout),
      written_(layout.parameters().size(), false) {
  std::span<float> shards = shard_memory_.as<float>();
  std::span<float> shared =
      bucket_memory_.as<float>().subspan(static_cast<std::size_t>(bucket_capacity_));
  for (std::size_t index = 0; index < layout.segments().size(); ++index) {
    const Segment& segment = layout.segments()[index];
    const auto shard_numel = static_cast<std::size_t>(segment.shard_numel);
    shards_.push_back(shards.first(shard_numel));
    shards = shards.subspan(shard_numel);
    if (!segment.shared) continue;
    whole_[index] = shared.first(static_cast<std::size_t>(segment.numel));
    shared = shared.subspan(static_cast<std::size_t>(segment.numel));
  }
}

void ShardedGradients::begin(engine::MicroStep micro_step) {
  micro_step_ = micro_step;
  pending_.reset();
  units_left_ = layout_.units();
  bucket_used_ = 0;
  std::fill(written_.begin(), written_.end(), false);
}

void ShardedGradients::place(int unit, StreamView stream) {
  if (bucket_used_ + bucket_share(layout_, unit) > bucket_capacity_) flush(stream);
  for (const int index : layout_.unit_segments(unit)) {
    const Segment& segment = layout_.segment(index);
    std::span<float>& whole = whole_[static_cast<std::size_t>(index)];
    if (!segment.shared) {
      whole = bucket_memory_.as<float>().subspan(static_cast<std::size_t>(bucket_used_),
                                                 static_cast<std::size_t>(segment.numel));
      bucket_used_ += segment.numel;
    }
    stream.launch([this, &segment, values = whole] { zero_padding(layout_, segment, values); });
  }
}

std::span<const model::GradientTarget> ShardedGradients::targets(int unit, StreamView stream) {
  place(unit, stream);
  fill_targets(layout_, unit, whole_, written_, targets_);
  return targets_;
}

void ShardedGradients::reduce(int unit, StreamView stream) {
  for (const int index : pending_.complete(unit)) {
    if (layout_.segment(index).shared) {
      reduce_segment(index, stream);
    } else {
      filled_.push_back(index);
    }
  }
  --units_left_;
  if (units_left_ == 0 || options_.bucket_numel == 0) flush(stream);
}

void ShardedGradients::flush(StreamView stream) {
  for (const int index : filled_) reduce_segment(index, stream);
  filled_.clear();
  bucket_used_ = 0;
}

void ShardedGradients::reduce_segment(int index, StreamView stream) {
  const std::span<float> whole = whole_[static_cast<std::size_t>(index)];
  const std::span<float> shard = own(index);
  const std::int64_t shard_numel = layout_.segment(index).shard_numel;
  const TensorView source(whole, {layout_.segment(index).numel});
  if (micro_step_.first()) {
    communicator_.reduce_scatter(source, {shard, {shard_numel}}, stream);
    return;
  }
  const std::span<float> sum =
      whole.subspan(static_cast<std::size_t>(communicator_.rank() * shard_numel), shard.size());
  communicator_.reduce_scatter(source, {sum, {shard_numel}}, stream);
  stream.launch([shard, sum] { add_to(shard, sum); });
}

std::span<float> ShardedGradients::own(int segment) const {
  return shards_[static_cast<std::size_t>(segment)];
}

}  // namespace dstrain::zero
