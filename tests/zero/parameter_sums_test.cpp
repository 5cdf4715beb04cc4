// Optimizers that need to know of whole parameters, wherever their elements are updated.

#include "runtime/optim/parameter_groups.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/zero/memory_tiers.h"
#include "tests/zero/training_fixture.h"

using namespace dstrain;
using dstrain::test::check_planned;
using dstrain::test::check_same_bits;
using dstrain::test::device;
using dstrain::test::host;
using dstrain::test::nvme;
using dstrain::test::run_training;
using dstrain::test::TrainingCase;
using dstrain::test::TrainingResult;

namespace {

using Names = std::vector<std::string>;

optim::Optimizer lamb() {
  return optim::Optimizer(rules::Lamb::Settings{.weight_decay = 0.1});
}

optim::ParameterGroups all_by_lamb(const Names& /*names*/) {
  return optim::ParameterGroups(rules::Lamb::Settings{.weight_decay = 0.1});
}

bool is_matrix(const std::string& name) {
  return name.ends_with("weight") && name.find("ln_") == std::string::npos;
}

/// As is usual: the others have no length worth keeping.
optim::ParameterGroups matrices_by_lamb(const Names& names) {
  optim::ParameterGroup matrices{.optimizer = lamb()};
  for (const std::string& name : names) {
    if (is_matrix(name)) matrices.names.push_back(name);
  }
  std::vector<optim::ParameterGroup> groups;
  groups.push_back(std::move(matrices));
  groups.push_back({.optimizer = optim::Optimizer(rules::Adam::Settings{})});
  return optim::ParameterGroups(std::move(groups));
}

}  // namespace

TEST_CASE("Parameter sums: all stages give the same bits", "[zero][sums]") {
  TrainingCase settings{.world = GENERATE(1, 2, 3),
                        .dtype = GENERATE(DType::f32, DType::bf16),
                        .in_splits = GENERATE(1, 3),
                        .groups = all_by_lamb};
  const TrainingResult reference = run_training(settings);
  check_planned(reference);
  CHECK(reference.ranks_agree);
  settings.groups = {};
  CHECK(run_training(settings).weights != reference.weights);
  settings.groups = all_by_lamb;
  for (const int stage : {1, 2, 3}) {
    CAPTURE(settings.world, settings.dtype, settings.in_splits, stage);
    settings.stage = stage;
    settings.overlap = {.enabled = settings.world > 1, .prefetch_numel = 1'000'000};
    const TrainingResult result = run_training(settings);
    check_same_bits(result, reference);
    check_planned(result);
  }
}

TEST_CASE("Parameter sums: tiles are measured as one parameter", "[zero][sums][tiles]") {
  TrainingCase settings{.world = 2, .stage = 3, .groups = all_by_lamb};
  const TrainingResult whole = run_training(settings);
  settings.in_splits = GENERATE(2, 3);
  const TrainingResult tiled = run_training(settings);
  for (std::size_t i = 0; i < whole.losses.size(); ++i) {
    CHECK(tiled.losses[i] == Catch::Approx(whole.losses[i]).epsilon(1e-5));
    CHECK(tiled.norms[i] == Catch::Approx(whole.norms[i]).epsilon(1e-4));
  }
}

TEST_CASE("Parameter sums: every tier gives the same bits", "[zero][sums][offload]") {
  const test::TempDir folder;
  TrainingCase settings{.world = GENERATE(1, 2),
                        .stage = 3,
                        .dtype = GENERATE(DType::f32, DType::bf16),
                        .accumulation = 2,
                        .groups = GENERATE(false, true) ? matrices_by_lamb : all_by_lamb};
  settings.nvme_path = folder.path().string();
  const TrainingResult reference = run_training(settings);
  settings.reloads = true;
  settings.deferred = GENERATE(std::optional<std::uint64_t>(), std::optional<std::uint64_t>(7));
  for (zero::Offload offload :
       {zero::Offload{}, zero::Offload{host, 0.5, device}, zero::Offload{host, 1, host},
        zero::Offload{nvme, 0.5, device}, zero::Offload{nvme, 1, host},
        zero::Offload{device, 1, nvme}, zero::Offload{nvme, 1, nvme}}) {
    CAPTURE(settings.world, settings.dtype, offload.optimizer, offload.parameters,
            settings.deferred.has_value());
    offload.sub_group_numel = 256;
    settings.offload = offload;
    settings.overlap = {.enabled = true, .prefetch_numel = 1'000'000};
    const TrainingResult result = run_training(settings);
    check_same_bits(result, reference);
    check_planned(result);
  }
}

TEST_CASE("Parameter sums: groups with and without them", "[zero][sums]") {
  TrainingCase settings{.world = 2,
                        .stage = GENERATE(0, 1, 2, 3),
                        .dtype = GENERATE(DType::f32, DType::bf16),
                        .clipping = 0,
                        .steps = 1};
  const TrainingResult by_lamb = run_training([&] {
    settings.groups = all_by_lamb;
    return settings;
  }());
  settings.groups = [](const Names& /*names*/) {
    return optim::ParameterGroups(rules::Adam::Settings{});
  };
  const TrainingResult by_adamw = run_training(settings);
  settings.groups = matrices_by_lamb;
  const TrainingResult both = run_training(settings);
  for (const auto& [name, values] : both.parameters) {
    CAPTURE(name);
    CHECK((values == (is_matrix(name) ? by_lamb : by_adamw).parameters.at(name)));
  }
  check_planned(both);
}
