#pragma once
#include <span>
#include <vector>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// The group that one rank is in after a split.
struct SplitPlan {
  std::vector<int> members;  ///< ranks of the parent, in the order of the new group
  int rank = 0;              ///< this rank in the new group
};

/// Returns the plan for `rank` of the parent, where the ranks gave `splits`, in rank order.
SplitPlan plan_split(std::span<const Communicator::Split> splits, int rank);

}  // namespace dstrain::comm
