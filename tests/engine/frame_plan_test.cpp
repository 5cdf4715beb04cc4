#include "runtime/engine/frame_plan.h"

#include <catch2/catch.hpp>

#include "tests/support/toy_gpt2.h"

using namespace dstrain;
using engine::FrameMode;
using engine::Pass;

TEST_CASE("FramePlan: the schedule runs the loss unit once", "[engine][frame]") {
  const model::Model model = test::toy_gpt2();
  const auto mode = GENERATE(FrameMode::training, FrameMode::checkpointing);
  const engine::FramePlan plan = engine::plan_frame(model, {{2, 8}, mode});
  const int units = static_cast<int>(model.units.size());
  REQUIRE(plan.calls.size() == static_cast<std::size_t>(2 * units - 1));
  for (int t = 0; t < 2 * units - 1; ++t) {
    const auto& call = plan.calls[static_cast<std::size_t>(t)];
    CHECK((call.pass == Pass::forward) == (t < units - 1));
    CHECK(call.unit == (t < units - 1 ? t : 2 * (units - 1) - t));
  }
}

TEST_CASE("FramePlan: what a call uses lives through it", "[engine][frame]") {
  const model::Model model = test::toy_gpt2();
  const auto mode = GENERATE(FrameMode::training, FrameMode::checkpointing, FrameMode::inference);
  const engine::FramePlan plan = engine::plan_frame(model, {{2, 8}, mode});
  for (int t = 0; t < static_cast<int>(plan.calls.size()); ++t) {
    const auto& call = plan.calls[static_cast<std::size_t>(t)];
    std::vector<int> used{call.saved, call.workspace};
    for (const auto* list :
         {&call.inputs, &call.outputs, &call.output_gradients, &call.input_gradients}) {
      used.insert(used.end(), list->begin(), list->end());
    }
    for (const int index : used) {
      if (index < 0) continue;
      const engine::Interval& interval = plan.intervals[static_cast<std::size_t>(index)];
      CHECK((interval.first <= t && t <= interval.last));
      CHECK(interval.offset + interval.bytes <= plan.bytes);
    }
  }
}

TEST_CASE("FramePlan: checkpointing and inference and bf16 take less", "[engine][frame]") {
  const auto bytes = [](FrameMode mode, DType dtype = DType::f32) {
    return engine::Frame::bytes(model::make_gpt2(model::gpt2_preset("gpt2"), dtype),
                                {{8, 512}, mode});
  };
  CHECK(bytes(FrameMode::checkpointing) < bytes(FrameMode::training) / 2);
  CHECK(bytes(FrameMode::inference) < bytes(FrameMode::checkpointing));
  CHECK(10 * bytes(FrameMode::training, DType::bf16) < 6 * bytes(FrameMode::training));
}
