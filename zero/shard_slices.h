#pragma once
#include <vector>

#include "runtime/tensor/tensor_view.h"
#include "zero/flat_layout.h"

namespace dstrain::zero {

/// What a rank's shard of a segment holds of one parameter.
struct ShardSlice {
  int parameter = 0;        ///< index into FlatLayout::parameters()
  ElementRange elements{};  ///< of the parameter, row-major
  std::int64_t offset = 0;  ///< of the first one within the shard
};

/// The shard of `segment` that belongs to `rank`, cut at parameters, in order; padding is left out.
std::vector<ShardSlice> shard_slices(const FlatLayout& layout, int segment, int rank);

/// The part of a segment's flat values that is the shard of `rank`; they are whole, or that shard
/// already.
TensorView own_part(const Segment& segment, int rank, TensorView values);

}  // namespace dstrain::zero
