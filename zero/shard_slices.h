#pragma once
#include <vector>

#include "runtime/tensor/tensor_view.h"
#include "zero/flat_layout.h"
#include "zero/shard_plan.h"

namespace dstrain::zero {

/// What a range of a segment, such as a rank's shard, holds of one parameter.
struct ShardSlice {
  ParameterId parameter{};
  ElementRange elements{};  ///< of the parameter, row-major
  std::int64_t offset = 0;  ///< of the first one within the range
};

/// Elements `range` of `segment`, cut at parameters, in order; padding is left out.
std::vector<ShardSlice> range_slices(const FlatLayout& layout,
                                     SegmentId segment,
                                     ElementRange range);

/// Likewise the shard of `segment` that belongs to `rank`.
std::vector<ShardSlice> shard_slices(const FlatLayout& layout, SegmentId segment, int rank);

/// What a sub-group holds of its segment's shard.
struct SubGroupSlice {
  ShardSlice slice;                  ///< offset: within this rank's part of the sub-group
  std::int64_t elements_before = 0;  ///< of the shard's slice, in the sub-groups before
};
std::vector<SubGroupSlice> sub_group_slices(const FlatLayout& layout,
                                            const SubGroup& sub_group,
                                            int rank);

/// The part of a segment's flat values that is the shard of `rank`; they are whole, or lie in
/// that shard already.
TensorView own_shard(const Segment& segment, int rank, TensorView values);

}  // namespace dstrain::zero
