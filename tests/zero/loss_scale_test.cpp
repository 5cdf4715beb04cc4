// Training in halves with a scaled loss, and steps that overflow.
#include <array>
#include <map>

#include "runtime/optim/parameter_groups.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/zero/memory_tiers.h"
#include "tests/zero/random_place.h"
#include "tests/zero/training_fixture.h"

using namespace dstrain;
using dstrain::test::check_planned;
using dstrain::test::check_same_bits;
using dstrain::test::device;
using dstrain::test::draw;
using dstrain::test::draw_place;
using dstrain::test::host;
using dstrain::test::nvme;
using dstrain::test::plain_stage;
using dstrain::test::run_training;
using dstrain::test::TrainingCase;
using dstrain::test::TrainingResult;

namespace {

constexpr double usual_scale = 0x1p16;

std::vector<zero::Offload> offloads() {
  return {zero::Offload{},
          zero::Offload{host, 0.5, device},
          zero::Offload{host, 1, host},
          zero::Offload{nvme, 1, device},
          zero::Offload{device, 1, nvme},
          zero::Offload{nvme, 1, nvme}};
}

}  // namespace

TEST_CASE("Loss scale: powers of two change no bit where nothing is lost", "[zero][fp16]") {
  TrainingCase settings{.world = GENERATE(1, 2), .stage = GENERATE(0, 1, 2, 3)};
  settings.dtype = GENERATE(DType::f32, DType::bf16);
  settings.clipping = GENERATE(0.0, 0.5);
  const TrainingResult plain = run_training(settings);
  settings.loss_scale = 0x1p20;
  check_same_bits(run_training(settings), plain);
}

TEST_CASE("fp16: all stages give the same bits", "[zero][fp16]") {
  TrainingCase settings{.world = GENERATE(1, 2, 3),
                        .dtype = DType::f16,
                        .dropout = 0.1F,
                        .in_splits = GENERATE(1, 3),
                        .loss_scale = usual_scale};
  const TrainingResult reference = run_training(settings);
  check_planned(reference);
  CHECK(reference.taken == std::vector<bool>(3, true));
  settings.mode = GENERATE(engine::FrameMode::training, engine::FrameMode::checkpointing);
  for (const int stage : {1, 2, 3}) {
    CAPTURE(settings.world, settings.in_splits, stage);
    settings.stage = stage;
    settings.overlap = {.enabled = settings.world > 1, .prefetch_numel = 1'000'000};
    const TrainingResult result = run_training(settings);
    check_same_bits(result, reference);
    check_planned(result);
  }
}

TEST_CASE("fp16: with accumulation every tier gives the same bits", "[zero][fp16][offload]") {
  const test::TempDir folder;
  TrainingCase settings{.world = GENERATE(1, 2),
                        .stage = 3,
                        .dtype = DType::f16,
                        .accumulation = 2,
                        .loss_scale = usual_scale};
  settings.nvme_path = folder.path().string();
  const TrainingResult reference = run_training(settings);
  settings.reloads = true;
  settings.deferred = GENERATE(std::optional<std::uint64_t>(), std::optional<std::uint64_t>(3));
  for (zero::Offload offload : offloads()) {
    CAPTURE(settings.world, offload.optimizer, offload.parameters, settings.deferred.has_value());
    offload.sub_group_numel = 512;
    settings.offload = offload;
    settings.overlap = {.enabled = true, .prefetch_numel = 1'000'000};
    const TrainingResult result = run_training(settings);
    check_same_bits(result, reference);
    check_planned(result);
  }
}

TEST_CASE("fp16: a step that overflows changes nothing", "[zero][fp16][offload]") {
  const test::TempDir folder;
  TrainingCase settings{.world = GENERATE(1, 2),
                        .stage = 3,
                        .dtype = DType::f16,
                        .accumulation = 2,
                        .clipping = GENERATE(0.0, 1.0),
                        .loss_scale = usual_scale};
  if (GENERATE(false, true)) {
    settings.groups = [](const std::vector<std::string>& /*names*/) {
      return optim::ParameterGroups(rules::Lamb::Settings{});
    };
  }
  settings.nvme_path = folder.path().string();
  settings.deferred = GENERATE(std::optional<std::uint64_t>(), std::optional<std::uint64_t>(3));
  for (const int stage : {0, 2}) {
    CAPTURE(stage);
    TrainingCase own = settings;
    own.stage = stage;
    own.missing_step = 2;
    const TrainingResult expected = run_training(own);
    own.missing_step = 0;
    own.overflowing_step = 2;
    const TrainingResult result = run_training(own);
    CHECK(result.taken == std::vector<bool>{true, false, true});
    CHECK(result.weights == expected.weights);
  }
  settings.missing_step = 2;
  const TrainingResult expected = run_training(settings);
  settings.missing_step = 0;
  settings.overflowing_step = 2;
  settings.overlap = {.enabled = true, .prefetch_numel = 1'000'000};
  for (zero::Offload offload : offloads()) {
    CAPTURE(settings.world, offload.optimizer, offload.parameters, settings.deferred.has_value());
    offload.sub_group_numel = 512;
    settings.offload = offload;
    const TrainingResult result = run_training(settings);
    CHECK(result.taken == std::vector<bool>{true, false, true});
    CHECK((result.weights == expected.weights));
    CHECK(result.losses.back() == expected.losses.back());
  }
}

TEST_CASE("fp16: early updates of a step that overflows are taken back", "[zero][fp16][offload]") {
  const test::TempDir folder;
  TrainingCase settings{.world = GENERATE(1, 2),
                        .stage = 3,
                        .dtype = DType::f16,
                        .accumulation = GENERATE(1, 2),
                        .clipping = GENERATE(0.0, 100.0),
                        .loss_scale = usual_scale};
  settings.nvme_path = folder.path().string();
  settings.missing_step = 3;
  settings.steps = 5;
  const TrainingResult expected = run_training(settings);
  settings.missing_step = 0;
  settings.overflowing_step = 3;
  settings.overlap = {.enabled = true, .prefetch_numel = 1'000'000};
  settings.deferred = GENERATE(std::optional<std::uint64_t>(), std::optional<std::uint64_t>(3));
  settings.offload = {nvme, 1, GENERATE(device, nvme)};
  settings.offload.sub_group_numel = 512;
  settings.offload.early = zero::EarlyUpdate::revocable;
  const TrainingResult result = run_training(settings);
  CHECK(result.taken == std::vector<bool>{true, true, false, true, true});
  CHECK((result.weights == expected.weights));
}

TEST_CASE("fp16: 200 random configurations follow the plain run", "[zero][fp16][offload]") {
  const test::TempDir folder;
  std::mt19937 random(16);
  std::map<std::array<std::int64_t, 5>, TrainingResult> plain;
  for (int number = 0; number < 200; ++number) {
    TrainingCase settings{.world = draw(random, 1, 2, 3),
                          .stage = draw(random, 0, 1, 2, 3),
                          .dtype = DType::f16,
                          .accumulation = draw(random, 1, 2),
                          .clipping = draw(random, 0.0, 1.0),
                          .in_splits = draw(random, 1, 3),
                          .steps = 2,
                          .loss_scale = usual_scale};
    TrainingCase own = settings;
    own.stage = plain_stage(settings);
    const std::array<std::int64_t, 5> key{own.world, own.accumulation, own.in_splits, own.stage,
                                          own.clipping > 0 ? 1 : 0};
    if (!plain.contains(key)) plain[key] = run_training(own);
    draw_place(settings, random, folder.path().string(), true);
    CAPTURE(number, settings.world, settings.stage, settings.accumulation,
            settings.offload.optimizer, settings.offload.parameters, settings.deferred.has_value());
    const TrainingResult result = run_training(settings);
    check_same_bits(result, plain.at(key));
    check_planned(result);
  }
}

TEST_CASE("fp16: the parameter is named where backward begins to overflow", "[zero][fp16]") {
  const test::TempDir folder;
  TrainingCase settings{.world = 1,
                        .stage = GENERATE(0, 2, 3),
                        .dtype = DType::f16,
                        .steps = 1,
                        .loss_scale = usual_scale,
                        .overflowing_step = 1};
  settings.nvme_path = folder.path().string();
  settings.deferred = GENERATE(std::optional<std::uint64_t>(), std::optional<std::uint64_t>(3));
  const TrainingResult here = run_training(settings);
  CHECK(here.not_finite.value_or("none") == "ln_f.bias");
  if (settings.stage == 3) {
    settings.offload = {GENERATE(host, nvme), 1, device};
    settings.offload.sub_group_numel = 512;
    CHECK(run_training(settings).not_finite.value_or("none") == "ln_f.bias");
  }
}
