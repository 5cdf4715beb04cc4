#include "zero/plan_search.h"

#include <algorithm>

#include "runtime/model/families.h"
#include "tests/support/catch.h"
#include "tests/zero/memory_tiers.h"

using namespace dstrain;
using dstrain::test::device;
using dstrain::test::host;
using dstrain::test::nvme;
using zero::PlanBudget;
using zero::PlanChoice;
using zero::PlanRow;

namespace {

constexpr int world = 4;
constexpr int ranks_per_node = 2;

/// The plan of a choice on four ranks; activations as if a checkpoint saved half of them.
PlanRow row_of(const model::Model& model, const PlanChoice& choice) {
  const std::int64_t threshold = choice.lean ? 0 : 100'000;
  const zero::FlatLayout layout(model, {world, threshold});
  const bool overlap = choice.stage == 3 && !choice.lean;
  zero::MemoryPlan plan =
      zero::plan_memory(layout, {.stage = choice.stage,
                                 .overlap = {.enabled = overlap, .prefetch_numel = 50'000'000},
                                 .offload = {choice.optimizer, 1, choice.parameters},
                                 .activations = (choice.checkpointing ? 1 : 2) * 100 * mebibyte});
  // Any order of speeds will do: offloading and checkpointing cost, higher stages too.
  const double cost = choice.stage + (choice.checkpointing ? 8 : 0) +
                      4 * static_cast<double>(choice.optimizer) +
                      2 * static_cast<double>(choice.parameters);
  return {choice, plan, cost};
}

std::vector<PlanRow> all_rows(std::vector<MemoryTier> tiers) {
  const model::Model model = model::model_preset("gpt2")->make();
  std::vector<PlanRow> rows;
  for (const PlanChoice& choice : zero::plan_choices(tiers)) rows.push_back(row_of(model, choice));
  return rows;
}

bool contains(const std::vector<PlanRow>& rows, const PlanChoice& choice) {
  return std::ranges::find(rows, choice, &PlanRow::choice) != rows.end();
}

bool fits(const PlanRow& row, const PlanBudget& budget) {
  return row.memory.total(device) <= budget.device &&
         (row.memory.total(host) + row.memory.total(MemoryTier::pinned)) * ranks_per_node <=
             budget.host &&
         row.memory.total(nvme) * ranks_per_node <= budget.nvme;
}

std::vector<PlanBudget> budgets() {
  std::vector<PlanBudget> all;
  for (const Bytes on_device : {100, 300, 500, 700, 900, 1200, 1600, 2400}) {
    for (const Bytes on_host : {500, 800, 1500, 3000}) {
      for (const Bytes on_nvme : {0, 400, 2000}) {
        all.push_back(
            {on_device * mebibyte, on_host * mebibyte, on_nvme * mebibyte, ranks_per_node});
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("PlanSearch: choices are what the stages allow", "[zero][plan]") {
  const std::vector<MemoryTier> tiers{device, host, nvme};
  const std::vector<PlanChoice> choices = zero::plan_choices(tiers);
  std::size_t allowed = 0;
  for (const int stage : {0, 1, 2, 3}) {
    for (const MemoryTier optimizer : tiers) {
      for (const MemoryTier parameters : tiers) {
        for (const bool checkpointing : {false, true}) {
          for (const bool lean : {false, true}) {
            if (optimizer != device && stage < 1) continue;
            if (optimizer == nvme && stage < 3) continue;
            if ((parameters != device || lean) && stage < 3) continue;
            ++allowed;
            const PlanChoice choice{stage, optimizer, parameters, checkpointing, lean};
            CHECK(std::ranges::count(choices, choice) == 1);
          }
        }
      }
    }
  }
  CHECK(choices.size() == allowed);
  CHECK(zero::plan_choices(std::vector{device}).size() == 10);
}

TEST_CASE("PlanSearch: the rows are exactly the choices that fit", "[zero][plan]") {
  const std::vector<PlanRow> rows = all_rows({device, host, nvme});
  for (const PlanBudget& budget : budgets()) {
    CAPTURE(budget.device, budget.host, budget.nvme);
    const std::vector<PlanRow> fit = zero::rows_that_fit(rows, budget);
    for (const PlanRow& row : fit) CHECK(fits(row, budget));
    for (const PlanRow& row : rows) {
      PlanChoice plain = row.choice;
      plain.lean = false;
      const bool needless = row.choice.lean && contains(fit, plain);
      CHECK(contains(fit, row.choice) == (fits(row, budget) && !needless));
    }
    CHECK(std::ranges::is_sorted(fit, {}, &PlanRow::cost));
  }
}

TEST_CASE("PlanSearch: more memory loses no choice and no speed", "[zero][plan]") {
  const std::vector<PlanRow> rows = all_rows({device, host, nvme});
  for (const PlanBudget& budget : budgets()) {
    const std::vector<PlanRow> fit = zero::rows_that_fit(rows, budget);
    for (Bytes PlanBudget::*tier : {&PlanBudget::device, &PlanBudget::host, &PlanBudget::nvme}) {
      PlanBudget more = budget;
      more.*tier += 300 * mebibyte;
      CAPTURE(budget.device, budget.host, budget.nvme, more.device, more.host, more.nvme);
      const std::vector<PlanRow> more_fit = zero::rows_that_fit(rows, more);
      for (const PlanRow& row : fit) {
        PlanChoice plain = row.choice;
        plain.lean = false;
        CHECK((contains(more_fit, row.choice) || contains(more_fit, plain)));
      }
      if (!fit.empty()) CHECK(more_fit.front().cost <= fit.front().cost);
    }
  }
}

TEST_CASE("PlanSearch: choices that are as fast keep their order", "[zero][plan]") {
  std::vector<PlanRow> rows = all_rows({device, host});
  for (PlanRow& row : rows) row.cost = row.choice.checkpointing ? 2 : 1;
  const PlanBudget plenty{1000 * gibibyte, 1000 * gibibyte, 0, ranks_per_node};
  std::vector<PlanChoice> expected;
  for (const bool checkpointing : {false, true}) {
    for (const PlanRow& row : rows) {
      const bool wanted = row.choice.checkpointing == checkpointing && !row.choice.lean;
      if (wanted) expected.push_back(row.choice);
    }
  }
  std::vector<PlanChoice> found;
  for (const PlanRow& row : zero::rows_that_fit(rows, plenty)) found.push_back(row.choice);
  CHECK((found == expected));
}

TEST_CASE("PlanSearch: the closest miss is named by tier", "[zero][plan]") {
  const std::vector<PlanRow> rows = all_rows({device, host});
  const PlanBudget budget{100 * mebibyte, 100 * mebibyte, 0, ranks_per_node};
  REQUIRE(zero::rows_that_fit(rows, budget).empty());
  const PlanRow& closest = zero::closest_row(rows, budget);
  const zero::PlanMiss miss = zero::plan_miss(closest.memory, budget);
  for (const PlanRow& row : rows) {
    CHECK(zero::plan_miss(row.memory, budget).total() >= miss.total());
  }
  PlanBudget enough = budget;
  enough.device += miss.device;
  enough.host += miss.host;
  CHECK(contains(zero::rows_that_fit(rows, enough), closest.choice));
  enough.host -= 1;
  CHECK(zero::rows_that_fit(rows, enough).empty());
  CHECK(zero::describe({gibibyte, 0, mebibyte}) ==
        "1.00 GiB of device memory per rank and 1.00 MiB of NVMe per node");
}
