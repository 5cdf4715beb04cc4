// Activations on the host show in no result, and take the memory that the plan says.

#include "tests/support/catch.h"
#include "tests/zero/training_fixture.h"

using namespace dstrain;
using engine::FrameMode;
using test::run_training;
using test::TrainingCase;
using test::TrainingResult;

namespace {

constexpr auto activations = static_cast<std::size_t>(MemoryCategory::activations);

/// With enough layers for most of what they keep to leave the device.
TrainingCase deep_case() {
  return {.mode = FrameMode::checkpointing, .layers = 5, .steps = 2};
}

/// With all that draws or sums besides, for each of some stages and types.
TrainingCase eventful_case() {
  TrainingCase settings = deep_case();
  settings.stage = GENERATE(0, 2, 3);
  settings.dtype = GENERATE(DType::f32, DType::bf16);
  settings.accumulation = 2;
  settings.dropout = 0.2F;
  settings.evaluates = true;
  return settings;
}

TrainingResult run_on_host(TrainingCase settings) {
  settings.mode = FrameMode::host_checkpointing;
  return run_training(settings);
}

}  // namespace

TEST_CASE("Host checkpointing: changes no bit", "[zero][checkpointing]") {
  TrainingCase settings = eventful_case();
  settings.world = GENERATE(1, 2, 3);
  CAPTURE(settings.world, settings.stage);
  const TrainingResult reference = run_training(settings);
  check_same_bits(run_on_host(settings), reference);
}

TEST_CASE("Host checkpointing: changes no bit beside overlap", "[zero][checkpointing]") {
  TrainingCase settings = eventful_case();
  settings.world = 2;
  CAPTURE(settings.stage);
  const TrainingResult reference = run_training(settings);
  settings.overlap = {.enabled = true, .prefetch_numel = 1'000'000};
  check_same_bits(run_on_host(settings), reference);
}

TEST_CASE("Host checkpointing: with all else offloaded changes no bit", "[zero][checkpointing]") {
  TrainingCase settings = deep_case();
  settings.world = GENERATE(1, 2);
  settings.stage = 3;
  const TrainingResult reference = run_training(settings);
  settings.offload = {MemoryTier::host, 1, MemoryTier::host};
  const TrainingResult result = run_on_host(settings);
  check_same_bits(result, reference);
  CHECK(result.peak == result.planned);
  CHECK(result.host_peak == result.host_planned);
}

TEST_CASE("Host checkpointing: memory of each tier is the plan's", "[zero][checkpointing]") {
  TrainingCase settings = deep_case();
  settings.world = GENERATE(1, 3);
  settings.stage = GENERATE(0, 2, 3);
  settings.dtype = GENERATE(DType::f32, DType::bf16);
  const TrainingResult before = run_training(settings);
  CHECK(before.host_peak == 0);
  const TrainingResult after = run_on_host(settings);
  CHECK(after.peak == after.planned);
  CHECK(after.host_peak == after.host_planned);
  CHECK(after.host_peak == after.host_activations);
  // (B, T, 20), the inputs of four blocks: the last one's is needed again at once.
  const std::int64_t rows = settings.global_batch / settings.world * 10;
  CHECK(after.host_activations == 4 * rows * 20 * size_of(settings.dtype));
  CHECK(after.peak[activations] < before.peak[activations]);
}
