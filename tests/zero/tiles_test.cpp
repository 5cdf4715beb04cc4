// Blocks whose weights are gathered tile by tile: the same bits at every stage, less memory.
#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/zero/memory_tiers.h"
#include "tests/zero/training_fixture.h"

using namespace dstrain;
using dstrain::engine::FrameMode;
using dstrain::test::check_same_bits;
using dstrain::test::host;
using dstrain::test::nvme;
using dstrain::test::run_training;
using dstrain::test::TrainingCase;
using dstrain::test::TrainingResult;

namespace {

Bytes buffers_of(const TrainingResult& result) {
  return result.peak[static_cast<std::size_t>(MemoryCategory::buffers)];
}

}  // namespace

TEST_CASE("Tiles: bit-equal at every stage", "[zero][tiles]") {
  TrainingCase settings{.world = GENERATE(1, 3), .dtype = GENERATE(DType::f32, DType::bf16)};
  settings.in_splits = GENERATE(2, 5);
  settings.mode = GENERATE(FrameMode::training, FrameMode::checkpointing);
  settings.dropout = 0.1F;
  const TrainingResult reference = run_training(settings);
  for (const int stage : {1, 2, 3}) {
    for (const bool overlap : {false, true}) {
      if (overlap && settings.world == 1) continue;
      for (const std::int64_t bucket : {0, 3000, 1'000'000}) {
        if (stage == 1 && bucket > 0) continue;  // it reduces unit by unit
        CAPTURE(settings.world, settings.in_splits, stage, overlap, bucket);
        settings.stage = stage;
        settings.overlap = {.enabled = overlap, .prefetch_numel = 1'000'000};
        settings.reduce_bucket_numel = bucket;
        check_same_bits(run_training(settings), reference);
      }
    }
  }
}

TEST_CASE("Tiles: with accumulation and offload stage 3 equals 2", "[zero][tiles]") {
  const test::TempDir folder;
  TrainingCase settings{.world = GENERATE(1, 2),
                        .stage = 2,
                        .dtype = GENERATE(DType::f32, DType::bf16),
                        .accumulation = 2,
                        .in_splits = 3};
  settings.nvme_path = folder.path().string();
  const TrainingResult reference = run_training(settings);
  settings.stage = 3;
  for (zero::Offload offload : {zero::Offload{host, 0.6, host}, zero::Offload{nvme, 1, nvme}}) {
    for (const bool overlap : {false, true}) {
      CAPTURE(settings.world, overlap, static_cast<int>(offload.optimizer));
      offload.sub_group_numel = 300;
      settings.offload = offload;
      settings.overlap = {.enabled = overlap, .prefetch_numel = 1'000'000};
      const TrainingResult result = run_training(settings);
      check_same_bits(result, reference);
      CHECK(result.peak == result.planned);
      CHECK(result.host_peak == result.host_planned);
    }
  }
}

TEST_CASE("Tiles: results are those of whole weights up to rounding", "[zero][tiles]") {
  TrainingCase settings{.world = 2, .stage = 3};
  const TrainingResult whole = run_training(settings);
  settings.in_splits = GENERATE(2, 3, 100);
  const TrainingResult tiled = run_training(settings);
  REQUIRE(tiled.losses.size() == whole.losses.size());
  for (std::size_t i = 0; i < whole.losses.size(); ++i) {
    CHECK(tiled.losses[i] == Catch::Approx(whole.losses[i]).epsilon(1e-5));
    CHECK(tiled.norms[i] == Catch::Approx(whole.norms[i]).epsilon(1e-4));
  }
}

TEST_CASE("Tiles: no more than tiles is gathered", "[zero][tiles][memory]") {
  TrainingCase settings{.world = 2, .stage = 3, .dtype = GENERATE(DType::f32, DType::bf16)};
  settings.overlap.enabled = GENERATE(false, true);
  settings.overlap.prefetch_numel = 1'000'000;
  const TrainingResult whole = run_training(settings);
  settings.in_splits = 4;
  const TrainingResult tiled = run_training(settings);
  CHECK(tiled.peak == tiled.planned);
  CHECK(buffers_of(tiled) < buffers_of(whole) / 2);
}
