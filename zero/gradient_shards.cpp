#include "zero/gradient_shards.h"

namespace dstrain::zero {
namespace {

/// Elements of each segment's shard that lie at `place`.
std::vector<std::int64_t> numels(const FlatLayout& layout, GradientShards::Place place) {
  std::vector<std::int64_t> numels;
  for (std::size_t index = 0; index < layout.segments().size(); ++index) {
    const MemoryTier home = place.homes[index];
    const bool here = place.offloaded ? on_host(home) : home == MemoryTier::device;
    numels.push_back(here ? layout.segments()[index].shard_numel : 0);
  }
  return numels;
}

}  // namespace

Bytes GradientShards::bytes(const FlatLayout& layout, Place place) {
  Bytes bytes = 0;
  for (const std::int64_t numel : numels(layout, place)) bytes += numel * size_of(DType::f32);
  return bytes;
}

GradientShards::GradientShards(const FlatLayout& layout,
                               Place place,
                               MemoryResource& memory,
                               StreamView stream)
    : memory_(bytes(layout, place), memory, stream) {
  Bytes next = 0;
  for (const std::int64_t numel : numels(layout, place)) {
    TensorView& shard = shards_.emplace_back();
    if (numel > 0) shard = memory_.block().cut(next, DType::f32, {numel});
    next += numel * size_of(DType::f32);
  }
}

}  // namespace dstrain::zero
