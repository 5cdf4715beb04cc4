// Training on devices whose memory the host cannot reach, and which run what is launched when they
// like: with the bits of the CPU, and within the plan.
#include <catch2/catch.hpp>

#include "runtime/base/error.h"
#include "tests/support/skip.h"
#include "tests/zero/training_fixture.h"

namespace dstrain {
namespace {

void check_deferred(test::TrainingCase settings, std::uint64_t seed) {
  CAPTURE(settings.world, settings.stage, seed);
  const test::TrainingResult expected = test::run_training(settings);
  settings.deferred = seed;
  const test::TrainingResult result = test::run_training(settings);
  test::check_same_bits(result, expected);
  CHECK(result.peak == result.planned);
}

TEST_CASE("Deferred device: all stages have the bits of the CPU", "[zero][deferred]") {
  const int world = GENERATE(1, 2, 3);
  const int stage = GENERATE(0, 1, 2, 3);
  const bool overlap = GENERATE(false, true);
  check_deferred({.world = world,
                  .stage = stage,
                  .accumulation = 2,
                  .steps = 2,
                  .evaluates = true,
                  .overlap = {.enabled = overlap, .prefetch_numel = 1'000'000}},
                 static_cast<std::uint64_t>(10 * world + stage));
}

TEST_CASE("Deferred device: in bf16 and in tiles and with recomputing", "[zero][deferred]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::int64_t in_splits = GENERATE(1, 3);
  const auto mode = GENERATE(engine::FrameMode::training, engine::FrameMode::checkpointing,
                             engine::FrameMode::host_checkpointing);
  check_deferred({.world = 2,
                  .stage = 3,
                  .dtype = dtype,
                  .mode = mode,
                  .layers = 3,
                  .dropout = 0.1F,
                  .in_splits = in_splits,
                  .steps = 2,
                  .overlap = {.enabled = true, .prefetch_numel = 1'000'000}},
                 static_cast<std::uint64_t>(in_splits));
}

/// Whether a run with a dropped wait shows it with one of some seeds: by other numbers, or an
/// error.
bool shows(test::TrainingCase settings, const test::TrainingResult& expected) {
  for (const int late_ms : {1, 4, 16, 64}) {
    settings.deferred = static_cast<std::uint64_t>(late_ms);
    settings.late_ms = late_ms;
    try {
      const test::TrainingResult result = test::run_training(settings);
      if (result.losses != expected.losses || result.norms != expected.norms ||
          result.weights != expected.weights) {
        return true;
      }
    } catch (const Error&) {
      return true;
    }
  }
  return false;
}

TEST_CASE("Deferred device: nearly every wait that is left out shows", "[zero][deferred]") {
#ifdef __SANITIZE_THREAD__
  test::skip("a wait that is left out is a race");
#endif
  test::TrainingCase settings{.world = 2,
                              .stage = 3,
                              .global_batch = 4,
                              .persistence_threshold = 40,
                              .layers = 2,
                              .steps = 1,
                              .overlap = {.enabled = true, .prefetch_numel = 1'000'000},
                              .deferred = 1};
  const test::TrainingResult expected = test::run_training(settings);
  std::int64_t shown = 0;
  for (settings.dropped_wait = 0; settings.dropped_wait < expected.waits; ++settings.dropped_wait) {
    shown += shows(settings, expected) ? 1 : 0;
  }
  // Some waits are for what another wait, or the other rank, brings about anyway.
  CAPTURE(shown, expected.waits);
  CHECK(expected.waits > 50);
  CHECK(4 * shown > 3 * expected.waits);
}

}  // namespace
}  // namespace dstrain
