// What is offloaded shows in no result, and takes the memory that the plan says.

#include "runtime/model/families.h"
#include "runtime/ops/decide_step.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/zero/memory_tiers.h"
#include "tests/zero/training_fixture.h"
#include "zero/shard_plan.h"

using namespace dstrain;
using dstrain::test::check_same_bits;
using dstrain::test::device;
using dstrain::test::host;
using dstrain::test::nvme;
using dstrain::test::run_training;
using dstrain::test::TrainingCase;
using dstrain::test::TrainingResult;

namespace {

std::size_t place(MemoryCategory category) {
  return static_cast<std::size_t>(category);
}

}  // namespace

TEST_CASE("Offload: changes no bit", "[zero][offload]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const int world = GENERATE(1, 2, 3);
  const int stage = GENERATE(1, 2, 3);
  const std::int64_t accumulation = GENERATE(1, 2);
  TrainingCase settings{
      .world = world, .stage = stage, .dtype = dtype, .accumulation = accumulation};
  const TrainingResult reference = run_training(settings);
  for (const zero::Offload offload :
       {zero::Offload{host, 1, device}, zero::Offload{host, 0.5, device},
        zero::Offload{device, 1, host}, zero::Offload{host, 1, host}}) {
    if (offload.parameters == host && stage < 3) continue;
    for (const bool overlap : {false, true}) {
      if (overlap && world == 1 && offload.parameters == device) continue;
      CAPTURE(world, stage, accumulation, offload.optimizer_ratio, overlap,
              static_cast<int>(offload.optimizer), static_cast<int>(offload.parameters));
      settings.offload = offload;
      settings.overlap.enabled = overlap;
      settings.overlap.prefetch_numel = 1'000'000;
      check_same_bits(run_training(settings), reference);
    }
  }
}

TEST_CASE("Offload: to a disk changes no bit", "[zero][offload]") {
  struct Pipeline {
    std::int64_t sub_group_numel;
    int buffers;
    std::int64_t parameters_in_host;
    bool overlap;
  };
  const Pipeline pipeline = GENERATE(Pipeline{1024, 1, 0, false}, Pipeline{512, 2, 1000, true},
                                     Pipeline{1'000'000, 4, 0, true});
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const int world = GENERATE(1, 3);
  const test::TempDir folder;
  TrainingCase settings{.world = world, .stage = 3, .dtype = dtype, .accumulation = 2, .steps = 2};
  settings.nvme_path = folder.path().string();
  const TrainingResult reference = run_training(settings);
  settings.overlap = {.enabled = pipeline.overlap, .prefetch_numel = 1'000'000};
  for (zero::Offload offload : {zero::Offload{nvme, 1, device}, zero::Offload{nvme, 0.5, host},
                                zero::Offload{host, 1, nvme}, zero::Offload{device, 1, nvme},
                                zero::Offload{nvme, 1, nvme}}) {
    if (pipeline.overlap && world == 1 && offload.parameters == device) continue;
    CAPTURE(world, pipeline.buffers, static_cast<int>(offload.optimizer),
            static_cast<int>(offload.parameters));
    offload.sub_group_numel = pipeline.sub_group_numel;
    offload.optimizer_buffers = offload.parameter_buffers = pipeline.buffers;
    offload.read_ahead = offload.write_behind = pipeline.buffers > 1;
    offload.parameters_in_host = pipeline.parameters_in_host;
    settings.offload = offload;
    check_same_bits(run_training(settings), reference);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

namespace {

constexpr int early_steps = 9;

/// Steps that are begun early as the last one was not clipped: those that are accepted, and those
/// that are not.
std::pair<int, int> early_outcomes(std::span<const double> norms, double clipping) {
  int accepted = 0;
  int revoked = 0;
  for (std::size_t step = 1; step < norms.size(); ++step) {
    if (ops::clip_scale(norms[step - 1], clipping) != 1) continue;
    ++(ops::clip_scale(norms[step], clipping) == 1 ? accepted : revoked);
  }
  return {accepted, revoked};
}

/// Runs with a limit of the norm with which both happen.
TrainingResult run_with_both(TrainingCase& settings) {
  settings.clipping = 0;
  for (const double norm : run_training(settings).norms) {
    settings.clipping = norm * 1.01;
    TrainingResult result = run_training(settings);
    const auto [accepted, revoked] = early_outcomes(result.norms, settings.clipping);
    if (accepted > 0 && revoked > 0) return result;
  }
  FAIL("no limit lies between the norms");
  return {};
}

}  // namespace

TEST_CASE("Offload: early updates change no bit", "[zero][offload][early]") {
  struct Pipeline {
    std::int64_t sub_group_numel;
    int buffers;
    bool overlap;
    std::int64_t accumulation;
    std::int64_t in_splits;
  };
  const Pipeline pipeline = GENERATE(Pipeline{1024, 2, false, 1, 2}, Pipeline{512, 2, true, 2, 1},
                                     Pipeline{1'000'000, 4, true, 1, 1});
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const int world = GENERATE(1, 3);
  const test::TempDir folder;
  TrainingCase settings{.world = world,
                        .stage = 3,
                        .dtype = dtype,
                        .accumulation = pipeline.accumulation,
                        .learning_rate = 5e-2,  // so that the norm goes up and down
                        .in_splits = pipeline.in_splits,
                        .steps = early_steps,
                        .evaluates = true};
  settings.nvme_path = folder.path().string();
  for (const bool clips : {false, true}) {
    settings.offload = {};
    settings.overlap = {};
    settings.clipping = 0;
    const TrainingResult reference = clips ? run_with_both(settings) : run_training(settings);
    settings.overlap = {.enabled = pipeline.overlap, .prefetch_numel = 1'000'000};
    for (zero::Offload offload : {zero::Offload{nvme, 1, device}, zero::Offload{nvme, 0.5, host},
                                  zero::Offload{nvme, 1, nvme}}) {
      CAPTURE(world, clips, pipeline.buffers, static_cast<int>(offload.parameters));
      offload.sub_group_numel = pipeline.sub_group_numel;
      offload.optimizer_buffers = offload.parameter_buffers = pipeline.buffers;
      offload.keeps_gradients = clips || pipeline.accumulation > 1;
      offload.early = clips ? zero::EarlyUpdate::revocable : zero::EarlyUpdate::irrevocable;
      settings.offload = offload;
      check_same_bits(run_training(settings), reference);
    }
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("Offload: memory of each tier is the plan's", "[zero][offload][memory]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const int world = GENERATE(1, 3);
  const int stage = GENERATE(1, 2, 3);
  TrainingCase settings{.world = world, .stage = stage, .dtype = dtype, .steps = 1};
  const TrainingResult before = run_training(settings);
  settings.offload = {host, GENERATE(0.4, 1.0), stage == 3 ? host : device};
  const TrainingResult after = run_training(settings);
  CHECK(after.peak == after.planned);
  CHECK(after.host_peak == after.host_planned);
  CHECK(after.host_peak > 0);
  const std::size_t optimizer = place(MemoryCategory::optimizer);
  CHECK(after.peak[optimizer] < before.peak[optimizer]);
  if (settings.offload.optimizer_ratio == 1.0) CHECK(after.peak[optimizer] == 0);
  const std::size_t gradients = place(MemoryCategory::gradients);
  if (stage > 1) CHECK(after.peak[gradients] < before.peak[gradients]);
}

TEST_CASE("Offload: a ratio keeps at most its share on the device", "[zero][offload]") {
  const model::Model model = model::model_preset("gpt2")->make({DType::bf16});
  const zero::FlatLayout layout(model, {GENERATE(1, 4), 100'000});
  const double ratio = GENERATE(0.0, 0.25, 0.5, 0.9, 1.0);
  std::int64_t stays = 0;
  std::int64_t all = 0;
  const zero::ShardPlan plan(layout, {.stage = 3, .offload = {host, ratio, device}});
  for (const zero::SubGroup& sub_group : plan.sub_groups) {
    all += sub_group.numel;
    if (sub_group.tier == device) stays += sub_group.numel;
  }
  const double share = static_cast<double>(stays) / static_cast<double>(all);
  CHECK(share <= 1 - ratio);
  CHECK(share > 1 - ratio - 0.07);  // a block is 6 % of the model
}

TEST_CASE("Offload: memory beside a disk is the plan's", "[zero][offload][memory]") {
  const test::TempDir folder;
  TrainingCase settings{.world = GENERATE(1, 3), .stage = 3, .dtype = DType::bf16, .steps = 1};
  settings.nvme_path = folder.path().string();
  settings.offload = {nvme, GENERATE(0.4, 1.0), nvme};
  settings.offload.sub_group_numel = 256;
  settings.offload.parameters_in_host = GENERATE(0, 2000);
  settings.offload.early = GENERATE(zero::EarlyUpdate::off, zero::EarlyUpdate::irrevocable,
                                    zero::EarlyUpdate::revocable);
  if (settings.offload.early == zero::EarlyUpdate::irrevocable) {
    settings.offload.keeps_gradients = false;
    settings.clipping = 0;
  }
  const TrainingResult result = run_training(settings);
  test::check_planned(result);
  CHECK(result.disk_peak > 0);
}
