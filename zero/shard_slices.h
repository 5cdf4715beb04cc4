#pragma once
#include <vector>

#include "runtime/tensor/tensor_view.h"
#include "zero/flat_layout.h"
#include "zero/shard_plan.h"

namespace dstrain::zero {

/// The elements of one parameter in a range of a segment, such as a rank's shard.
struct ShardSlice {
  ParameterId parameter{};
  ElementRange elements{};  ///< of the parameter, row-major
  std::int64_t offset = 0;  ///< of the first one within the range
};

/// Elements `range` of `segment`, cut at parameters, in order; padding is left out.
std::vector<ShardSlice> range_slices(const FlatLayout& layout,
                                     SegmentId segment,
                                     ElementRange range);

/// The same for the shard of `segment` that belongs to `rank`.
std::vector<ShardSlice> shard_slices(const FlatLayout& layout, SegmentId segment, int rank);

/// The elements of one parameter in a rank's share of a sub-group.
struct SubGroupSlice {
  ShardSlice slice;                  ///< its offset is within this rank's share of the sub-group
  std::int64_t elements_before = 0;  ///< of the shard's slice, in earlier sub-groups
};
std::vector<SubGroupSlice> sub_group_slices(const FlatLayout& layout,
                                            const SubGroup& sub_group,
                                            int rank);

/// The shard of `rank` in a segment's flat `values`, which are whole or already that shard.
TensorView own_shard(const Segment& segment, int rank, TensorView values);

}  // namespace dstrain::zero
