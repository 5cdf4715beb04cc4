#include "runtime/engine/frame_plan.h"

#include "runtime/model/families.h"
#include "tests/support/catch.h"
#include "tests/support/toy_gpt2.h"

using namespace dstrain;
using engine::FrameMode;
using engine::Pass;

TEST_CASE("FramePlan: the schedule runs the loss unit once", "[engine][frame]") {
  const model::Model model = test::toy_gpt2();
  const auto mode =
      GENERATE(FrameMode::training, FrameMode::checkpointing, FrameMode::host_checkpointing);
  const engine::FramePlan plan = engine::plan_frame(model, {{2, 8}, mode});
  const int units = static_cast<int>(model.units.size());
  REQUIRE(plan.calls.size() == static_cast<std::size_t>(2 * units - 1));
  for (int t = 0; t < 2 * units - 1; ++t) {
    const auto& call = plan.calls[static_cast<std::size_t>(t)];
    CHECK((call.pass == Pass::forward) == (t < units - 1));
    CHECK(call.unit == (t < units - 1 ? t : 2 * (units - 1) - t));
  }
}

TEST_CASE("FramePlan: buffers of a call live during the whole call", "[engine][frame]") {
  const model::Model model = test::toy_gpt2();
  const auto mode = GENERATE(FrameMode::training, FrameMode::checkpointing,
                             FrameMode::host_checkpointing, FrameMode::inference);
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
      const Interval& interval = plan.intervals[static_cast<std::size_t>(index)];
      CHECK((interval.first <= t && t <= interval.last));
      CHECK(interval.offset + interval.bytes <= plan.bytes.device);
    }
  }
}

TEST_CASE("FramePlan: checkpointing and inference and bf16 take less", "[engine][frame]") {
  const auto bytes = [](FrameMode mode, DType dtype = DType::f32) {
    return engine::Frame::bytes(model::model_preset("gpt2")->make({dtype}), {{8, 512}, mode})
        .device;
  };
  CHECK(bytes(FrameMode::checkpointing) < bytes(FrameMode::training) / 2);
  CHECK(bytes(FrameMode::inference) < bytes(FrameMode::checkpointing));
  CHECK(10 * bytes(FrameMode::training, DType::bf16) < 6 * bytes(FrameMode::training));
}

TEST_CASE("FramePlan: activations leave the device between their uses", "[engine][frame]") {
  const model::Model model = test::toy_gpt2(GENERATE(DType::f32, DType::bf16));
  const engine::FramePlan here = engine::plan_frame(model, {{2, 8}, FrameMode::checkpointing});
  const engine::FramePlan there =
      engine::plan_frame(model, {{2, 8}, FrameMode::host_checkpointing});
  CHECK(here.bytes.host == 0);
  CHECK(there.bytes.device < here.bytes.device);
  // Those that the blocks read but for the last one's, which is needed again too soon.
  const int blocks = static_cast<int>(model.units.size()) - 2;
  REQUIRE(there.host_intervals.size() == static_cast<std::size_t>(blocks - 1));
  CHECK(there.bytes.host == (blocks - 1) * 2 * 8 * 24 * size_of(model.dtype));
}

TEST_CASE("FramePlan: a copy has the duration of a call", "[engine][frame]") {
  const model::Model model = test::toy_gpt2();
  const engine::FramePlan plan = engine::plan_frame(model, {{2, 8}, FrameMode::host_checkpointing});
  const int calls = static_cast<int>(plan.calls.size());
  int stores = 0;
  int fetches = 0;
  for (int t = 0; t < calls; ++t) {
    const auto& call = plan.calls[static_cast<std::size_t>(t)];
    for (const auto& copy : call.stores) {
      CHECK(call.outputs == std::vector<int>{copy.device});
      CHECK(plan.intervals[static_cast<std::size_t>(copy.device)].last == t + 1);
      CHECK(plan.host_intervals[static_cast<std::size_t>(copy.host)].first == t);
      ++stores;
    }
    for (const auto& copy : call.fetches) {
      const auto& next = plan.calls[static_cast<std::size_t>(t + 1)];
      CHECK(next.inputs == std::vector<int>{copy.device});
      CHECK(plan.intervals[static_cast<std::size_t>(copy.device)].first == t);
      CHECK(plan.host_intervals[static_cast<std::size_t>(copy.host)].last == t);
      ++fetches;
    }
  }
  CHECK(stores == 5);
  CHECK(fetches == stores);
}
