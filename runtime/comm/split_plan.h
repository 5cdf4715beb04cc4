#pragma once
#include <span>
#include <vector>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// The part of a group that one rank finds itself in after a split.
struct SplitPlan {
  std::vector<int> members;  ///< ranks of the parent, in the order of the part
  int rank = 0;              ///< of the rank that asks, in the part
};

/// What `rank` of the parent finds when the ranks gave `splits`, in rank order.
SplitPlan plan_split(std::span<const Communicator::Split> splits, int rank);

}  // namespace dstrain::comm
