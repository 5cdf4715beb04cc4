// Training on devices whose memory the host cannot reach, and which run what is launched when they
// like: with the bits of the CPU, and within the plan.
#include <catch2/catch.hpp>

#include "runtime/base/error.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/zero/memory_tiers.h"
#include "tests/zero/training_fixture.h"

namespace dstrain {
namespace {

using test::device;
using test::host;
using test::nvme;

void check_deferred(test::TrainingCase settings, std::uint64_t seed) {
  CAPTURE(settings.world, settings.stage, seed);
  const test::TrainingResult expected = test::run_training(settings);
  settings.deferred = seed;
  settings.reloads = settings.steps > 1;
  const test::TrainingResult result = test::run_training(settings);
  test::check_same_bits(result, expected);
  CHECK(result.peak == result.planned);
  CHECK(result.host_peak == result.host_planned);
  CHECK(result.disk_peak == result.disk_planned);
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

TEST_CASE("Deferred device: with every offload", "[zero][deferred][offload]") {
  struct Case {
    int stage;
    zero::Offload offload;
  };
  const Case offloaded =
      GENERATE(Case{1, {host, 1, device}}, Case{2, {host, 0.5, device}}, Case{2, {host, 1, device}},
               Case{3, {host, 1, device}}, Case{3, {host, 1, host}}, Case{3, {device, 1, host}},
               Case{3, {nvme, 1, device}}, Case{3, {nvme, 0.5, host}}, Case{3, {host, 1, nvme}},
               Case{3, {device, 1, nvme}}, Case{3, {nvme, 1, nvme}});
  const bool overlap = GENERATE(false, true);
  const int world = overlap ? 2 : 1;
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const test::TempDir folder;
  test::TrainingCase settings{.world = world,
                              .stage = offloaded.stage,
                              .dtype = dtype,
                              .accumulation = 2,
                              .steps = 2,
                              .overlap = {.enabled = overlap, .prefetch_numel = 1'000'000},
                              .offload = offloaded.offload};
  settings.nvme_path = folder.path().string();
  settings.offload.sub_group_numel = 256;
  CAPTURE(dtype, overlap, settings.offload.optimizer, settings.offload.parameters);
  check_deferred(settings, static_cast<std::uint64_t>(world + 2 * offloaded.stage));
}

TEST_CASE("Deferred device: with early updates", "[zero][deferred][offload]") {
  const auto parameters = GENERATE(device, host, nvme);
  const auto early = GENERATE(zero::EarlyUpdate::irrevocable, zero::EarlyUpdate::revocable);
  const bool overlap = GENERATE(false, true);
  const DType dtype = overlap ? DType::bf16 : DType::f32;
  const test::TempDir folder;
  test::TrainingCase settings{.world = 2,
                              .stage = 3,
                              .dtype = dtype,
                              .clipping = early == zero::EarlyUpdate::revocable ? 3.0 : 0,
                              .steps = 4,
                              .overlap = {.enabled = overlap, .prefetch_numel = 1'000'000},
                              .offload = {nvme, 1, parameters}};
  settings.nvme_path = folder.path().string();
  settings.offload.sub_group_numel = 256;
  settings.offload.early = early;
  settings.offload.keeps_gradients = early == zero::EarlyUpdate::revocable;
  CAPTURE(dtype, overlap, parameters, early);
  check_deferred(settings, static_cast<std::uint64_t>(parameters) + 3);
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
