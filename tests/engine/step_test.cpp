// Which steps are taken, by a store whose norm is what the test says.
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "runtime/engine/engine.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/square_sum.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/toy_gpt2.h"

using namespace dstrain;

namespace {

constexpr std::int64_t tokens_per_sample = 8;

/// All parameters of a model without tiles, whole.
class WholeStore final : public engine::ParameterStore {
 public:
  WholeStore(const model::Model& model, float value) {
    std::vector<std::string> names;
    for (const model::ParameterSpec& spec : model.parameters()) {
      names.push_back(spec.name);
      shapes_.push_back(spec.shape);
      values_.emplace_back(static_cast<std::size_t>(spec.shape.numel()), value);
      gradients_.emplace_back(values_.back().size());
    }
    for (const auto& unit : model.units) {
      std::vector<TensorView>& views = views_.emplace_back();
      std::vector<model::GradientTarget>& targets = targets_.emplace_back();
      const auto add = [&](const std::string& name) {
        const auto index = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
        views.push_back(HostView(values_[index], shapes_[index]));
        targets.push_back({HostView(gradients_[index], shapes_[index])});
      };
      for (const model::ParameterSpec& spec : unit->spec().parameters) add(spec.name);
      for (const std::string& name : unit->spec().borrowed) add(name);
    }
  }

  double norm = 1;
  std::vector<optim::StepScalars> begun;
  std::vector<ops::StepDecision> steps;

  void load(const engine::StateSources& /*sources*/, StreamView /*stream*/) override {}
  [[nodiscard]] std::vector<engine::SavedState> saved_states() const override { return {}; }
  [[nodiscard]] std::vector<engine::ParameterSlice> saved_slices(int /*rank*/) const override {
    return {};
  }
  void copy_saved(engine::SaveTargetOf /*target_of*/) override {}
  void expect(std::span<const model::PartId> /*parts*/, std::int64_t /*rounds*/) override {}
  std::span<const TensorView> acquire(model::PartId part, StreamView /*stream*/) override {
    return views_[part];
  }
  void release(model::PartId /*part*/, StreamView /*stream*/) override {}
  std::span<const rules::ScalarValues> begin_step(const optim::StepScalars& scalars) override {
    begun.push_back(scalars);
    return {};
  }
  void begin(engine::MicroStep /*micro_step*/) override {}
  std::span<const model::GradientTarget> gradients(model::PartId part,
                                                   StreamView /*stream*/) override {
    return targets_[part];
  }
  void reduce(model::PartId /*part*/, StreamView /*stream*/) override {}
  void gather_totals(TensorView own, TensorView totals, StreamView stream) override {
    ExactSum squares;
    squares.add(norm * norm);
    ops::convert(ops::view_of(squares), own.part(0, {ExactSum::numel}), stream);
    ops::convert(own, totals.reshaped(own.shape()), stream);
  }
  void step(const optim::StepTensors& step, StreamView stream) override {
    ops::convert(step.decision, ops::view_of(steps.emplace_back()), stream);
  }
  std::optional<std::string> last_not_finite(TensorView /*sum*/) override { return std::nullopt; }

 private:
  std::vector<Shape> shapes_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
  // By unit, none of which has tiles.
  TypedVector<model::PartId, std::vector<TensorView>> views_;
  TypedVector<model::PartId, std::vector<model::GradientTarget>> targets_;
};

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
  WholeStore store;
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
