#include "zero/plan_search.h"

#include <algorithm>

namespace dstrain::zero {

PlanMiss plan_miss(const MemoryPlan& memory, const PlanBudget& budget) {
  const auto beyond = [](Bytes needed, Bytes allowed) {
    return std::max<Bytes>(0, needed - allowed);
  };
  const Bytes host = memory.total(MemoryTier::host) + memory.total(MemoryTier::pinned);
  return {beyond(memory.total(), budget.device), beyond(host * budget.ranks_per_node, budget.host),
          beyond(memory.total(MemoryTier::nvme) * budget.ranks_per_node, budget.nvme)};
}

std::string describe(const PlanMiss& miss) {
  std::vector<std::string> texts;
  const auto add = [&texts](Bytes bytes, const char* what) {
    if (bytes > 0) texts.push_back(fmt::format("{} of {}", format_bytes(bytes), what));
  };
  add(miss.device, "device memory per rank");
  add(miss.host, "host memory per node");
  add(miss.nvme, "NVMe per node");
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::vector<PlanRow> rows_that_fit(const std::vector<PlanRow>& rows, const PlanBudget& budget) {
  std::vector<PlanRow> fit;
  std::ranges::copy_if(rows, std::back_inserter(fit), [&](const PlanRow& row) {
    return plan_miss(row.memory, budget).total() == 0;
  });
  const auto fits_without = [plain = fit](const PlanRow& row) {
    PlanChoice choice = row.choice;
    choice.lean = false;
    return row.choice.lean && std::ranges::find(plain, choice, &PlanRow::choice) != plain.end();
  };
  std::erase_if(fit, fits_without);
  std::ranges::stable_sort(fit, {}, &PlanRow::cost);
  return fit;
}

const PlanRow& closest_row(const std::vector<PlanRow>& rows, const PlanBudget& budget) {
  return *std::ranges::min_element(
      rows, {}, [&](const PlanRow& row) { return plan_miss(row.memory, budget).total(); });
}

}  // namespace dstrain::zero
