#include "runtime/comm/split_plan.h"

#include <algorithm>

namespace dstrain::comm {

SplitPlan plan_split(std::span<const Communicator::Split> splits, int rank) {
  const int color = splits[static_cast<std::size_t>(rank)].color;
  SplitPlan plan;
  for (int r = 0; r < static_cast<int>(splits.size()); ++r) {
    if (splits[static_cast<std::size_t>(r)].color == color) plan.members.push_back(r);
  }
  std::ranges::stable_sort(
      plan.members, {}, [&](int member) { return splits[static_cast<std::size_t>(member)].key; });
  plan.rank = static_cast<int>(std::ranges::find(plan.members, rank) - plan.members.begin());
  return plan;
}

}  // namespace dstrain::comm
