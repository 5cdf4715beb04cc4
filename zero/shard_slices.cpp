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
                             std::min(end, place.offset + place.shape.numel())};
    if (range.count() <= 0) continue;
    const std::int64_t first = place.begin + range.begin - place.offset;
    slices.push_back({parameter, {first, first + range.count()}, range.begin - begin});
  }
  return slices;
}

std::vector<GroupSlice> group_slices(const FlatLayout& layout, const SubGroup& group, int rank) {
  const std::int64_t end = group.offset + group.numel;
  std::vector<GroupSlice> slices;
  for (const ShardSlice& slice : shard_slices(layout, group.segment, rank)) {
    const std::int64_t first = std::max(slice.offset, group.offset);
    const std::int64_t last = std::min(slice.offset + slice.elements.count(), end);
    if (first >= last) continue;
    const std::int64_t before = first - slice.offset;
    const std::int64_t begin = slice.elements.begin + before;
    slices.push_back(
        {{slice.parameter, {begin, begin + last - first}, first - group.offset}, before});
  }
  return slices;
}

TensorView own_part(const Segment& segment, int rank, TensorView values) {
  if (values.numel() <= segment.shard_numel) return values;
  return values.part(rank * segment.shard_numel, {segment.shard_numel});
}

}  // namespace dstrain::zero
