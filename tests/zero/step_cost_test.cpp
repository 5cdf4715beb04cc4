#include "zero/step_cost.h"

#include <tuple>

#include "runtime/model/families.h"
#include "tests/support/catch.h"
#include "tests/zero/memory_tiers.h"

using namespace dstrain;
using dstrain::test::device;
using dstrain::test::host;
using dstrain::test::nvme;
using zero::StepWork;

namespace {

struct Case {
  DType dtype = DType::f32;
  int world = 4;
  int stage = 0;
  zero::Offload offload{};
  std::int64_t micro_steps = 1;
  bool checkpointing = false;
  bool overlaps = false;
};

/// Counts per element of all parameters, none of them persistent.
struct PerElement {
  double sent;
  double updated;
  double copied;
  double swapped;
};

zero::StepWork work_of(const Case& settings) {
  const model::Model model = model::model_preset("gpt2")->make({settings.dtype});
  const zero::FlatLayout layout(model, {settings.world, 0});
  return zero::step_work(layout, {.store = {.stage = settings.stage,
                                            .overlap = {.enabled = settings.overlaps},
                                            .offload = settings.offload},
                                  .flops = 6e11,
                                  .micro_steps = settings.micro_steps,
                                  .checkpointing = settings.checkpointing});
}

void check(const Case& settings, const PerElement& expected) {
  CAPTURE(static_cast<int>(settings.dtype), settings.stage, settings.micro_steps);
  constexpr double psi = 124'439'808;
  const StepWork work = work_of(settings);
  const auto per_element = [](Bytes bytes) {
    return static_cast<double>(bytes) / psi;
  };
  CHECK(per_element(work.sent) == Catch::Approx(expected.sent).epsilon(0.001));
  CHECK(per_element(work.updated) == Catch::Approx(expected.updated).epsilon(0.001));
  CHECK(per_element(work.copied) == Catch::Approx(expected.copied).epsilon(0.001));
  CHECK(per_element(work.swapped) == Catch::Approx(expected.swapped).epsilon(0.001));
}

}  // namespace

TEST_CASE("StepCost: collectives move what the stages say", "[zero][plan]") {
  constexpr double share = 3.0 / 4;  // a rank sends (N - 1) / N of what is gathered or reduced
  check({.stage = 0}, {share * 2 * 4, 28, 0, 0});
  check({.stage = 1}, {share * 2 * 4, 7, 0, 0});
  check({.stage = 2}, {share * 2 * 4, 7, 0, 0});
  check({.stage = 3}, {share * 3 * 4, 7, 0, 0});
  check({.stage = 1, .micro_steps = 5}, {share * 2 * 4, 7, 0, 0});
  check({.stage = 2, .micro_steps = 5}, {share * 6 * 4, 7, 0, 0});
  check({.stage = 3, .micro_steps = 5}, {share * 15 * 4, 7, 0, 0});
  check({.dtype = DType::bf16, .stage = 3}, {share * (4 + 2 * 2), 7.5, 0, 0});
  check({.world = 1, .stage = 3}, {0, 28, 0, 0});
}

TEST_CASE("StepCost: what is offloaded is copied", "[zero][plan]") {
  constexpr double sent_2 = 6;
  constexpr double sent_3 = 9;
  check({.stage = 2, .offload = {.optimizer = host}}, {sent_2, 7, (4 + 4) / 4.0, 0});
  check({.stage = 3, .offload = {.parameters = host}}, {sent_3, 7, (2 + 1) * 4 / 4.0, 0});
  check({.stage = 3, .offload = {.optimizer = host, .parameters = host}},
        {sent_3, 7, (4 + 2 * 4) / 4.0, 0});
  check({.stage = 3, .offload = {.optimizer = nvme, .parameters = device}},
        {sent_3, 7, (4 + 4) / 4.0, 2 * (12 + 4) / 4.0});
}

TEST_CASE("StepCost: early updates move fewer bytes and beside backward", "[zero][plan]") {
  const auto work = [](zero::EarlyUpdate early, std::int64_t micro_steps) {
    return work_of({.stage = 3,
                    .offload = {.optimizer = nvme, .early = early},
                    .micro_steps = micro_steps,
                    .overlaps = true});
  };
  constexpr double share = 124'439'808 / 4.0;
  using enum zero::EarlyUpdate;
  for (const auto& [early, micro_steps, bytes] :
       {std::tuple{irrevocable, 1, 24}, {irrevocable, 3, 40}, {revocable, 1, 28}}) {
    const StepWork done = work(early, micro_steps);
    CHECK(static_cast<double>(done.swapped) / share == Catch::Approx(bytes).epsilon(0.001));
    CHECK(done.swapped_beside == done.swapped);
    CHECK(zero::step_cost(done) < zero::step_cost(work(off, micro_steps)));
  }
  CHECK(work(off, 1).swapped_beside == 0);
}

TEST_CASE("StepCost: more work takes longer", "[zero][plan]") {
  const auto cost = [](const Case& settings) {
    return zero::step_cost(work_of(settings));
  };
  CHECK(work_of({.checkpointing = true}).flops == Catch::Approx(8e11));
  CHECK(cost({.checkpointing = true}) > cost({}));
  CHECK(cost({.stage = 3}) > cost({.stage = 2}));
  CHECK(cost({.stage = 2, .micro_steps = 2}) > cost({.stage = 1, .micro_steps = 2}));
  CHECK(cost({.stage = 2, .offload = {.optimizer = host}}) > cost({.stage = 2}));
  CHECK(cost({.stage = 2, .offload = {.optimizer = nvme}}) >
        cost({.stage = 2, .offload = {.optimizer = host}}));
}
