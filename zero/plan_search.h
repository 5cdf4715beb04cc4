#pragma once
#include <string>
#include <vector>

#include "zero/memory_plan.h"
#include "zero/plan_choice.h"

namespace dstrain::zero {

/// The memory there is. The host's and the NVMe's are shared by the ranks of a node; pinned memory
/// is the host's.
struct PlanBudget {
  Bytes device = 0;  ///< of a rank
  Bytes host = 0;    ///< of a node
  Bytes nvme = 0;    ///< of a node
  int ranks_per_node = 1;
};

/// A choice with what it takes.
struct PlanRow {
  PlanChoice choice;
  MemoryPlan memory;  ///< of a rank
  double cost = 0;    ///< of a step: the less, the sooner it stands in a plan
};

/// How far a plan goes beyond a budget: of a rank on the device, of a node elsewhere.
struct PlanMiss {
  Bytes device = 0;
  Bytes host = 0;
  Bytes nvme = 0;
  [[nodiscard]] Bytes total() const { return device + host + nvme; }
};
PlanMiss plan_miss(const MemoryPlan& memory, const PlanBudget& budget);

/// "12.0 MiB of device memory per rank and 1.00 GiB of host memory per node"
std::string describe(const PlanMiss& miss);

/// Those rows that fit, cheapest first, and in the order of `rows` where they cost the same. A lean
/// choice is left out where the same without it fits.
std::vector<PlanRow> rows_that_fit(const std::vector<PlanRow>& rows, const PlanBudget& budget);

/// The row that misses by the fewest bytes; the first of them. `rows` must not be empty.
const PlanRow& closest_row(const std::vector<PlanRow>& rows, const PlanBudget& budget);

}  // namespace dstrain::zero
