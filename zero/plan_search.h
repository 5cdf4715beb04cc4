#pragma once
#include <string>
#include <vector>

#include "zero/memory_plan.h"
#include "zero/plan_choice.h"

namespace dstrain::zero {

/// The memory available. The ranks of a node share host memory and NVMe; pinned memory is host
/// memory.
struct PlanBudget {
  Bytes device = 0;  ///< of a rank
  Bytes host = 0;    ///< of a node
  Bytes nvme = 0;    ///< of a node
  int ranks_per_node = 1;
};

/// A choice with its memory and its cost.
struct PlanRow {
  PlanChoice choice;
  MemoryPlan memory;  ///< of a rank
  double cost = 0;    ///< of a step; plans list cheaper ones first
};

/// Bytes by which a plan exceeds a budget: per rank on the device, per node elsewhere.
struct PlanMiss {
  Bytes device = 0;
  Bytes host = 0;
  Bytes nvme = 0;
  [[nodiscard]] Bytes total() const { return device + host + nvme; }
};
PlanMiss plan_miss(const MemoryPlan& memory, const PlanBudget& budget);

/// "12.0 MiB of device memory per rank and 1.00 GiB of host memory per node"
std::string describe(const PlanMiss& miss);

/// The rows that fit, cheapest first, and in the order of `rows` if they cost the same. A lean
/// choice is left out if the same choice fits without being lean.
std::vector<PlanRow> rows_that_fit(const std::vector<PlanRow>& rows, const PlanBudget& budget);

/// The row that misses by the fewest bytes; the first of them. `rows` must not be empty.
const PlanRow& closest_row(const std::vector<PlanRow>& rows, const PlanBudget& budget);

}  // namespace dstrain::zero
