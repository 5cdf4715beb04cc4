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
  std::span<float> rest = memory_.as<float>();
  for (const std::int64_t numel : numels(layout, place)) {
    shards_.push_back(rest.first(static_cast<std::size_t>(numel)));
    rest = rest.subspan(static_cast<std::size_t>(numel));
  }
}

}  // namespace dstrain::zero
