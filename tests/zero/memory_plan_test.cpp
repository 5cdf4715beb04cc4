#include "zero/memory_plan.h"

#include <catch2/catch.hpp>

#include "runtime/model/gpt2.h"

using namespace dstrain;

TEST_CASE("MemoryPlan: model states follow the ZeRO formula", "[zero][memory]") {
  const model::Model model = model::make_gpt2(model::gpt2_preset("gpt2"));
  const int stage = GENERATE(0, 1, 2, 3);
  const int world = GENERATE(1, 2, 3, 4, 8);
  CAPTURE(stage, world);
  const zero::FlatLayout layout(model, {world, 100'000});
  const zero::MemoryPlan plan = zero::plan_memory(layout, {.stage = stage});
  const auto formula = static_cast<double>(zero::formula_bytes(layout.numel(), stage, world));
  CHECK(static_cast<double>(plan.model_states()) == Approx(formula).epsilon(0.05));
}

TEST_CASE("MemoryPlan: the formula is the paper's in fp32", "[zero][memory]") {
  constexpr std::int64_t psi = 1'000'000;
  CHECK(zero::formula_bytes(psi, 0, 4) == 16 * psi);
  CHECK(zero::formula_bytes(psi, 1, 4) == 8 * psi + 8 * psi / 4);
  CHECK(zero::formula_bytes(psi, 2, 4) == 4 * psi + 12 * psi / 4);
  CHECK(zero::formula_bytes(psi, 3, 4) == 16 * psi / 4);
}
