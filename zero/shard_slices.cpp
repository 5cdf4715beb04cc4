#include "zero/shard_slices.h"

namespace dstrain::zero {

std::vector<ShardSlice> range_slices(const FlatLayout& layout,
                                     SegmentId segment,
                                     ElementRange range) {
  std::vector<ShardSlice> slices;
  for (const ParameterId parameter : layout.segment(segment).parameters) {
    const Placement& placement = layout.parameter(parameter);
    const ElementRange held{std::max(range.begin, placement.offset),
                            std::min(range.end, placement.offset + placement.shape.numel())};
    if (held.count() <= 0) continue;
    const std::int64_t first = placement.begin + held.begin - placement.offset;
    slices.push_back({parameter, {first, first + held.count()}, held.begin - range.begin});
  }
  return slices;
}

std::vector<ShardSlice> shard_slices(const FlatLayout& layout, SegmentId segment, int rank) {
  const std::int64_t numel = layout.segment(segment).shard_numel;
  return range_slices(layout, segment, {rank * numel, (rank + 1) * numel});
}

std::vector<SubGroupSlice> sub_group_slices(const FlatLayout& layout,
                                            const SubGroup& sub_group,
                                            int rank) {
  const std::int64_t end = sub_group.offset + sub_group.numel;
  std::vector<SubGroupSlice> slices;
  for (const ShardSlice& slice : shard_slices(layout, sub_group.segment, rank)) {
    const std::int64_t first = std::max(slice.offset, sub_group.offset);
    const std::int64_t last = std::min(slice.offset + slice.elements.count(), end);
    if (first >= last) continue;
    const std::int64_t before = first - slice.offset;
    const std::int64_t begin = slice.elements.begin + before;
    slices.push_back(
        {{slice.parameter, {begin, begin + last - first}, first - sub_group.offset}, before});
  }
  return slices;
}

TensorView own_shard(const Segment& segment, int rank, TensorView values) {
  if (values.numel() <= segment.shard_numel) return values;
  return values.part(rank * segment.shard_numel, {segment.shard_numel});
}

}  // namespace dstrain::zero
