// Masters, optimizer states, gradients and their sums over the ranks in 16 bits.
#include <array>
#include <map>

#include <fmt/format.h>

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

constexpr DType f32 = DType::f32;
constexpr DType bf16 = DType::bf16;
constexpr DType f16 = DType::f16;

/// A run's dtype, and what it is trained with besides.
struct Precision {
  DType dtype;
  config::StatePrecision states;
};

/// In the order of gradients, communication, masters, optimizer states.
constexpr std::array<Precision, 8> precisions() {
  return {{{f32, {f32, bf16, f32, f32}},
           {f32, {f32, f16, f32, f32}},
           {bf16, {bf16, f32, f32, f32}},
           {bf16, {bf16, bf16, f32, f32}},
           {bf16, {f32, f32, bf16, f32}},
           {bf16, {bf16, bf16, bf16, bf16}},
           {f16, {f16, f16, f32, f32}},
           {f16, {f16, f32, f16, f32}}}};
}

TrainingCase case_of(const Precision& precision) {
  TrainingCase settings{.dtype = precision.dtype, .precision = precision.states};
  if (precision.dtype == f16) settings.loss_scale = 0x1p12;
  return settings;
}

std::string describe(const Precision& precision) {
  const config::StatePrecision& states = precision.states;
  return fmt::format("{}: {} {} {} {}", name_of(precision.dtype), name_of(states.gradients),
                     name_of(states.communication), name_of(states.masters),
                     name_of(states.optimizer_states));
}

optim::ParameterGroups lamb(const std::vector<std::string>& /*names*/) {
  return optim::ParameterGroups(rules::Lamb::Settings{.weight_decay = 0.1});
}

}  // namespace

TEST_CASE("State precision: all stages give the same bits", "[zero][precision]") {
  const Precision precision = precisions().at(GENERATE(range(0U, 8U)));
  TrainingCase settings = case_of(precision);
  settings.world = GENERATE(1, 2, 3);
  settings.in_splits = GENERATE(1, 3);
  const TrainingResult reference = run_training(settings);
  check_planned(reference);
  CHECK(reference.ranks_agree);
  for (const int stage : {1, 2, 3}) {
    CAPTURE(describe(precision), settings.world, settings.in_splits, stage);
    settings.stage = stage;
    settings.overlap = {.enabled = settings.world > 1, .prefetch_numel = 1'000'000};
    const TrainingResult result = run_training(settings);
    check_same_bits(result, reference);
    check_planned(result);
  }
}

TEST_CASE("State precision: each of them changes the run a little", "[zero][precision]") {
  const Precision precision = precisions().at(GENERATE(range(0U, 8U)));
  TrainingCase settings = case_of(precision);
  settings.world = 2;
  settings.stage = GENERATE(0, 3);
  settings.accumulation = 2;
  CAPTURE(describe(precision), settings.stage);
  const TrainingResult result = run_training(settings);
  settings.precision = {};
  const TrainingResult exact = run_training(settings);
  CHECK((result.weights != exact.weights));
  for (std::size_t i = 0; i < exact.losses.size(); ++i) {
    CHECK(result.losses[i] == Catch::Approx(exact.losses[i]).epsilon(0.01));
    CHECK(result.norms[i] == Catch::Approx(exact.norms[i]).epsilon(0.03));
  }
}

TEST_CASE("State precision: one rank has nothing to send", "[zero][precision]") {
  TrainingCase settings{.world = 1, .stage = GENERATE(0, 1, 2, 3), .dtype = bf16};
  const TrainingResult plain = run_training(settings);
  settings.precision.communication = bf16;
  check_same_bits(run_training(settings), plain);
}

TEST_CASE("State precision: rounding is the same wherever parameters lie", "[zero][precision]") {
  TrainingCase settings = case_of({bf16, {bf16, bf16, bf16, bf16}});
  settings.world = 2;
  const TrainingResult reference = run_training(settings);
  settings.stage = 3;
  settings.persistence_threshold = GENERATE(0, 200, 1'000'000);
  check_same_bits(run_training(settings), reference);
}

TEST_CASE("State precision: a step that overflows changes nothing", "[zero][precision][fp16]") {
  const test::TempDir folder;
  TrainingCase settings = case_of({f16, {f16, f16, f16, f32}});
  settings.world = 2;
  settings.accumulation = GENERATE(1, 2);
  settings.nvme_path = folder.path().string();
  settings.stage = 3;
  settings.overlap = {.enabled = true, .prefetch_numel = 1'000'000};
  settings.offload = {GENERATE(device, host, nvme), 1, GENERATE(device, nvme)};
  settings.offload.sub_group_numel = 512;
  settings.missing_step = 2;
  const TrainingResult expected = run_training(settings);
  settings.missing_step = 0;
  settings.overflowing_step = 2;
  const TrainingResult result = run_training(settings);
  CHECK(result.taken == std::vector<bool>{true, false, true});
  CHECK((result.weights == expected.weights));
}

TEST_CASE("State precision: 100 random configurations follow the plain run",
          "[zero][precision][offload]") {
  const test::TempDir folder;
  std::mt19937 random(22);
  constexpr std::array<Precision, 8> all = precisions();
  std::map<std::array<std::int64_t, 7>, TrainingResult> plain;
  for (int number = 0; number < 100; ++number) {
    const std::size_t chosen = random() % all.size();
    TrainingCase settings = case_of(all[chosen]);
    settings.world = draw(random, 1, 2, 3);
    settings.stage = draw(random, 0, 1, 2, 3);
    settings.accumulation = draw(random, 1, 2);
    settings.clipping = draw(random, 0.0, 1.0);
    settings.in_splits = draw(random, 1, 3);
    settings.steps = 2;
    const bool by_lamb = draw(random, false, true);
    if (by_lamb) settings.groups = lamb;
    TrainingCase own = settings;
    own.stage = plain_stage(settings);
    const std::array<std::int64_t, 7> key{static_cast<std::int64_t>(chosen),
                                          own.world,
                                          own.accumulation,
                                          own.in_splits,
                                          own.stage,
                                          own.clipping > 0 ? 1 : 0,
                                          by_lamb ? 1 : 0};
    if (!plain.contains(key)) plain[key] = run_training(own);
    draw_place(settings, random, folder.path().string(), !by_lamb);
    CAPTURE(number, describe(all[chosen]), settings.world, settings.stage, settings.accumulation,
            settings.offload.optimizer, settings.offload.parameters, settings.offload.early,
            by_lamb, settings.deferred.has_value());
    const TrainingResult result = run_training(settings);
    check_same_bits(result, plain.at(key));
    check_planned(result);
  }
}
