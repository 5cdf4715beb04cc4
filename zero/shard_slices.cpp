#include "zero/shard_slices.h"

namespace dstrain::zero {

std::vector<ShardSlice> shard_slices(const FlatLayout& layout, int segment, int rank) {
  const Segment& whole = layout.segment(segment);
  const std::int64_t begin = rank * whole.shard_numel;
  const std::int64_t end = begin + whole.shard_numel;
  std::vector<ShardSlice> slices;
  for (const int parameter : whole.parameters) {
    const Placement& place = layout.parameter(parameter);
    const ElementRange range{std::max(begin, place.offset),
                             std::min(end, place.offset + place.spec.shape.numel())};
    if (range.count() <= 0) continue;
    slices.push_back(
        {parameter, {range.begin - place.offset, range.end - place.offset}, range.begin - begin});
  }
  return slices;
}

TensorView own_part(const Segment& segment, int rank, TensorView values) {
  const std::int64_t shard = segment.shard_numel;
  return values.part(values.numel() == shard ? 0 : rank * shard, {shard});
}

}  // namespace dstrain::zero
