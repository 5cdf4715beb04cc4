#include "zero/memory_plan.h"

#include "runtime/engine/engine.h"
#include "runtime/model/families.h"
#include "tests/support/catch.h"

using namespace dstrain;

TEST_CASE("MemoryPlan: model states follow the ZeRO formula", "[zero][memory]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const model::Model model = model::model_preset("gpt2")->make({dtype});
  const int stage = GENERATE(0, 1, 2, 3);
  const int world = GENERATE(1, 2, 3, 4, 8);
  CAPTURE(static_cast<int>(dtype), stage, world);
  const zero::FlatLayout layout(model, {world, 100'000});
  const zero::MemoryPlan plan = zero::plan_memory(layout, {.stage = stage});
  const auto formula =
      static_cast<double>(zero::formula_bytes({layout.numel(), dtype, stage, world}));
  CHECK(static_cast<double>(plan.model_states()) == Catch::Approx(formula).epsilon(0.05));
}

TEST_CASE("MemoryPlan: the formula is the paper's", "[zero][memory]") {
  constexpr std::int64_t psi = 1'000'000;
  const auto formula = [](DType dtype, int stage) {
    return zero::formula_bytes({psi, dtype, stage, 4});
  };
  CHECK(formula(DType::f32, 0) == 16 * psi);
  CHECK(formula(DType::f32, 1) == 8 * psi + 8 * psi / 4);
  CHECK(formula(DType::f32, 2) == 4 * psi + 12 * psi / 4);
  CHECK(formula(DType::f32, 3) == 16 * psi / 4);
  CHECK(formula(DType::bf16, 0) == 18 * psi);
  CHECK(formula(DType::bf16, 1) == 6 * psi + 12 * psi / 4);
  CHECK(formula(DType::bf16, 2) == 2 * psi + 16 * psi / 4);
  CHECK(formula(DType::bf16, 3) == 18 * psi / 4);
}

TEST_CASE("MemoryPlan: bf16 halves what is gathered", "[zero][memory]") {
  const auto plan = [](DType dtype) {
    const model::Model model = model::model_preset("gpt2")->make({dtype});
    return zero::plan_memory(zero::FlatLayout(model, {4, 100'000}), {.stage = 3});
  };
  const zero::MemoryPlan whole = plan(DType::f32);
  const zero::MemoryPlan half = plan(DType::bf16);
  CHECK(2 * half.of(MemoryCategory::parameters) == whole.of(MemoryCategory::parameters));
  CHECK(half.of(MemoryCategory::gradients) == whole.of(MemoryCategory::gradients));
  CHECK(2 * half.of(MemoryCategory::optimizer) == 3 * whole.of(MemoryCategory::optimizer));
  CHECK(half.of(MemoryCategory::buffers) < whole.of(MemoryCategory::buffers));
}

TEST_CASE("MemoryPlan: the copy that a save writes is shared out evenly", "[zero][memory]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const int stage = GENERATE(0, 3);
  const int world = GENERATE(1, 2, 3, 8);
  CAPTURE(static_cast<int>(dtype), stage, world);
  const model::Model model = model::model_preset("gpt2")->make({dtype});
  const zero::FlatLayout layout(model, {world, 100'000});
  const Bytes per_element = dtype == DType::f32 ? 12 : 14;
  CHECK(static_cast<double>(zero::plan_memory(layout, {.stage = stage}).total(MemoryTier::host)) ==
        Catch::Approx(static_cast<double>(layout.numel() * per_element / world)).epsilon(0.001));
}

TEST_CASE("MemoryPlan: plans for a device without its backend", "[zero][memory]") {
  const auto plan = [](DeviceKind kind) {
    const model::Model model = model::model_preset("gpt2")->make({.device = kind});
    return zero::plan_memory(
        zero::FlatLayout(model, {4, 100'000}),
        {.stage = 2,
         .device = kind,
         .activations = engine::Engine::activation_bytes(
             model, {.shape = {4, 512}, .mode = engine::FrameMode::training})});
  };
  const zero::MemoryPlan cpu = plan(DeviceKind::cpu);
  const zero::MemoryPlan cuda = plan(DeviceKind::cuda);
  CHECK(cuda.model_states() == cpu.model_states());
  CHECK(cuda.of(MemoryCategory::activations) == 1011741760);
  CHECK(cpu.of(MemoryCategory::activations) == 984458432);
  CHECK_THAT(zero::describe(cpu, 0),
             Catch::Matchers::ContainsSubstring("Libraries take more: oneDNN's scratchpad"));
  CHECK_THAT(zero::describe(cuda, 0),
             Catch::Matchers::ContainsSubstring("Libraries take more: the CUDA context"));
}
