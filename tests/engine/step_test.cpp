// Which steps are taken, by a store whose norm is what the test says.
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "runtime/engine/engine.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/toy_gpt2.h"
#include "tests/support/whole_store.h"

using namespace dstrain;

namespace {

constexpr std::int64_t tokens_per_sample = 8;

/// An engine on one rank, with parameters that all have the same value.
struct Workplace {
  explicit Workplace(float value) : store(model, value) {}
  ops::StepDecision take_step() {
    const std::vector<std::int32_t> tokens(tokens_per_sample, 3);
    const engine::MicroBatch batch{tokens, tokens, first_sample};
    engine.accumulate({.step = 1,
                       .update = {.number = update, .learning_rate = 0.1},
                       .micro_batches = {&batch, 1},
                       .labels = tokens_per_sample,
                       .loss_scale = loss_scale});
    const ops::StepDecision decision = engine.decision(1);
    engine.update();
    return decision;
  }

  std::int64_t update = 1;
  std::int64_t first_sample = 0;
  double loss_scale = 1;
  model::Model model = test::toy_gpt2();
  test::WholeStore store;
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};
  engine::Engine engine{{model, store, memory, memory},
                        {.shape = {1, tokens_per_sample},
                         .mode = engine::FrameMode::training,
                         .gradient_clipping = 2},
                        stream};
};

}  // namespace

TEST_CASE("Engine: gradients are clipped to their largest norm", "[engine][step]") {
  Workplace here(0.01F);
  here.store.norm = GENERATE(1.0, 8.0);
  const ops::StepDecision result = here.take_step();
  CHECK(std::isfinite(result.loss));
  CHECK(result.gradient_norm == here.store.norm);
  REQUIRE(here.store.steps.size() == 1);
  CHECK(here.store.steps[0].gradient_scale ==
        (here.store.norm < 2 ? 1.0 : 2.0 / (here.store.norm + 1e-6)));
}

TEST_CASE("Engine: a step is skipped if only its norm is not finite", "[engine][step]") {
  Workplace here(0.01F);
  here.store.norm =
      GENERATE(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN());
  CHECK_FALSE(here.take_step().is_taken());
  REQUIRE(here.store.steps.size() == 1);
  CHECK_FALSE(here.store.steps[0].is_taken());
}

TEST_CASE("Engine: a step is skipped if only its loss is not finite", "[engine][step]") {
  Workplace here(std::numeric_limits<float>::quiet_NaN());
  CHECK(std::isnan(here.take_step().loss));
  REQUIRE(here.store.steps.size() == 1);
  CHECK_FALSE(here.store.steps[0].is_taken());
}

TEST_CASE("Engine: gradients of a scaled loss are those of the loss", "[engine][step]") {
  Workplace here(0.01F);
  const double loss = here.take_step().loss;
  here.loss_scale = 64;
  here.store.norm = 64;
  const ops::StepDecision scaled = here.take_step();
  CHECK(scaled.loss == loss);
  CHECK(scaled.gradient_norm == 1);
  CHECK(here.store.steps[1].gradient_scale == 1.0 / 64);
  CHECK(here.store.begun[1].loss_scale == 64);
}

TEST_CASE("Engine: the optimizer counts its updates by itself", "[engine][step]") {
  Workplace here(0.01F);
  here.update = 3;
  here.take_step();
  REQUIRE(here.store.begun.size() == 1);
  CHECK(here.store.begun[0].update.number == 3);
}

TEST_CASE("Engine: a sample index beyond the range of dropout masks is refused", "[engine][step]") {
  Workplace here(0.01F);
  here.first_sample = (1 << 24) - 1;
  here.take_step();
  ++here.first_sample;
  CHECK_THAT(test::error_of([&] { here.take_step(); }),
             Catch::Matchers::ContainsSubstring("16777217 samples"));
}
