// Parameters that are updated in ways of their own, or not at all.
#include "runtime/optim/parameter_groups.h"

#include <array>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/zero/memory_tiers.h"
#include "tests/zero/training_fixture.h"

using namespace dstrain;
using dstrain::test::check_same_bits;
using dstrain::test::device;
using dstrain::test::host;
using dstrain::test::nvme;
using dstrain::test::run_training;
using dstrain::test::TrainingCase;
using dstrain::test::TrainingResult;

namespace {

using Names = std::vector<std::string>;

optim::Optimizer adamw(double weight_decay) {
  return optim::Optimizer(rules::Adam::Settings{.weight_decay = weight_decay});
}

/// Those of `names` that contain `part`.
Names with(const Names& names, const std::string& part) {
  Names found;
  for (const std::string& name : names) {
    if (name.find(part) != std::string::npos) found.push_back(name);
  }
  return found;
}

/// How parameters with `part` in their names are updated; the others as the fixture does.
struct Own {
  std::string part;
  bool trains = true;
  double rate_factor = 1;
  double weight_decay = 0.1;
};

auto groups_with(const Own& own) {
  return [own](const Names& names) {
    std::vector<optim::ParameterGroup> groups;
    groups.push_back({.optimizer = adamw(0.1)});
    groups.push_back(
        {.optimizer = own.trains ? std::optional(adamw(own.weight_decay)) : std::nullopt,
         .rate_factor = own.rate_factor,
         .names = with(names, own.part)});
    return optim::ParameterGroups(std::move(groups));
  };
}

/// All of them in the other way.
auto all_as(const Own& own) {
  return [own](const Names& /*names*/) {
    std::vector<optim::ParameterGroup> groups;
    groups.push_back({.optimizer = adamw(own.weight_decay), .rate_factor = own.rate_factor});
    return optim::ParameterGroups(std::move(groups));
  };
}

/// Whether each parameter of `result` is that of `other`, or of `own` where its name has `part`.
void check_mixed(const TrainingResult& result,
                 const std::string& part,
                 const TrainingResult& own,
                 const TrainingResult& other) {
  CHECK(result.parameters.size() > 20);
  for (const auto& [name, values] : result.parameters) {
    CAPTURE(name);
    const bool is_own = name.find(part) != std::string::npos;
    CHECK((values == (is_own ? own : other).parameters.at(name)));
  }
}

/// A case in which all parameters have the gradients of their first step.
TrainingCase one_step(int stage, DType dtype) {
  return {.world = 2, .stage = stage, .dtype = dtype, .clipping = 0, .steps = 1};
}

}  // namespace

TEST_CASE("Parameter groups: each is updated by its own rule and rate", "[zero][groups]") {
  TrainingCase settings = one_step(GENERATE(0, 1, 2, 3), GENERATE(DType::f32, DType::bf16));
  settings.in_splits = GENERATE(1, 3);
  const std::string part = GENERATE(as<std::string>{}, "bias", "wte", "h.1.", "c_fc.weight");
  CAPTURE(settings.stage, settings.dtype, settings.in_splits, part);
  const Own own{.part = part, .rate_factor = 0.5, .weight_decay = 0};
  const TrainingResult plain = run_training(settings);
  settings.groups = all_as(own);
  const TrainingResult all = run_training(settings);
  settings.groups = groups_with(own);
  const TrainingResult both = run_training(settings);
  check_mixed(both, part, all, plain);
  CHECK(both.losses == plain.losses);
  CHECK(both.norms == plain.norms);
  CHECK(both.peak == both.planned);
}

TEST_CASE("Parameter groups: of one rule change no bit", "[zero][groups]") {
  TrainingCase settings{.world = GENERATE(1, 3), .stage = GENERATE(0, 1, 2, 3)};
  settings.dtype = GENERATE(DType::f32, DType::bf16);
  settings.accumulation = 2;
  const TrainingResult plain = run_training(settings);
  settings.groups = groups_with({.part = GENERATE(as<std::string>{}, "weight", "c_fc")});
  settings.overlap = {.enabled = settings.world > 1, .prefetch_numel = 1'000'000};
  check_same_bits(run_training(settings), plain);
}

TEST_CASE("Parameter groups: frozen parameters do not change and do not affect the rest",
          "[zero][groups]") {
  TrainingCase settings = one_step(GENERATE(0, 1, 2, 3), GENERATE(DType::f32, DType::bf16));
  settings.in_splits = GENERATE(1, 3);
  const std::string part = GENERATE(as<std::string>{}, "bias", "wte", "ln_", "h.0.", "weight");
  CAPTURE(settings.stage, settings.dtype, settings.in_splits, part);
  const TrainingResult plain = run_training(settings);
  settings.groups = groups_with({.part = part, .trains = false});
  const TrainingResult frozen = run_training(settings);
  settings.steps = 0;
  const TrainingResult before = run_training(settings);
  check_mixed(frozen, part, before, plain);
  CHECK(frozen.losses == plain.losses);
  CHECK(frozen.norms[0] < plain.norms[0]);
  CHECK(frozen.peak == frozen.planned);
  for (const MemoryCategory category : {MemoryCategory::gradients, MemoryCategory::optimizer}) {
    const auto place = static_cast<std::size_t>(category);
    CHECK(frozen.peak[place] < plain.peak[place]);
  }
}

TEST_CASE("Parameter groups: frozen ones in any tier give the same bits", "[zero][groups]") {
  const test::TempDir folder;
  TrainingCase settings{.world = GENERATE(1, 2),
                        .stage = 3,
                        .dtype = GENERATE(DType::f32, DType::bf16),
                        .accumulation = 2};
  settings.nvme_path = folder.path().string();
  settings.groups =
      groups_with({.part = GENERATE(as<std::string>{}, "wte", "h.0.", "bias"), .trains = false});
  const TrainingResult reference = run_training(settings);
  settings.reloads = true;
  check_same_bits(run_training(settings), reference);
  settings.deferred = GENERATE(std::optional<std::uint64_t>(), std::optional<std::uint64_t>(4));
  for (zero::Offload offload :
       {zero::Offload{host, 1, device}, zero::Offload{host, 1, host}, zero::Offload{nvme, 1, host},
        zero::Offload{device, 1, nvme}, zero::Offload{nvme, 1, nvme}}) {
    CAPTURE(static_cast<int>(offload.optimizer), static_cast<int>(offload.parameters),
            settings.deferred.has_value());
    offload.sub_group_numel = 1024;
    settings.offload = offload;
    settings.overlap = {.enabled = true, .prefetch_numel = 1'000'000};
    const TrainingResult result = run_training(settings);
    check_same_bits(result, reference);
    test::check_planned(result);
  }
}
