#include "runtime/optim/parameter_groups.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::optim {
namespace {

bool takes_rest(const ParameterGroup& group) {
  return group.names.empty();
}

void check_names(std::span<const ParameterGroup> groups) {
  DSTRAIN_CHECK(std::ranges::count_if(groups, takes_rest) <= 1, "two groups take what is left");
  std::vector<std::string> named;
  for (const ParameterGroup& group : groups) {
    named.insert(named.end(), group.names.begin(), group.names.end());
  }
  std::ranges::sort(named);
  const auto repeated = std::ranges::adjacent_find(named);
  DSTRAIN_CHECK(repeated == named.end(), "{} is in two groups", *repeated);
}

}  // namespace

ParameterGroups::ParameterGroups(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {
  check_names(groups_);
  for (const ParameterGroup& group : groups_) {
    DSTRAIN_CHECK(
        !group.optimizer || std::ranges::equal(group.optimizer->state_names(), state_names()),
        "optimizers of two groups keep different states");
  }
}

ParameterGroups::ParameterGroups(const rules::Settings& rule)
    : ParameterGroups(std::vector{ParameterGroup{.optimizer = Optimizer(rule)}}) {}

ParameterGroupId ParameterGroups::group_of(const std::string& parameter) const {
  std::optional<ParameterGroupId> rest;
  for (const ParameterGroupId id : groups_.ids()) {
    const std::vector<std::string>& names = groups_[id].names;
    if (std::ranges::find(names, parameter) != names.end()) return id;
    if (names.empty()) rest = id;
  }
  DSTRAIN_CHECK(rest, "{} is in no group", parameter);
  return *rest;
}

const Optimizer& ParameterGroups::optimizer(ParameterGroupId group) const {
  DSTRAIN_CHECK(trains(group), "group {} is frozen", to_int(group));
  return *groups_[group].optimizer;
}

std::span<const std::string_view> ParameterGroups::state_names() const {
  for (const ParameterGroup& group : groups_) {
    if (group.optimizer) return group.optimizer->state_names();
  }
  return {};
}

std::int64_t ParameterGroups::sums() const {
  std::int64_t most = 0;
  for (const ParameterGroup& group : groups_) {
    if (group.optimizer) most = std::max(most, group.optimizer->sums());
  }
  return most;
}

TypedVector<ParameterGroupId, rules::ScalarValues> ParameterGroups::scalars(
    const rules::Step& step) const {
  TypedVector<ParameterGroupId, rules::ScalarValues> scalars;
  for (const ParameterGroup& group : groups_) {
    rules::Step own = step;
    own.learning_rate *= group.rate_factor;
    scalars.push_back(group.optimizer ? group.optimizer->scalars(own) : rules::ScalarValues{});
  }
  return scalars;
}

StepTensors tensors_of(const StepTensors& step, ParameterGroupId group) {
  return {step.scalars.rows(to_int(group), 1).reshaped({rules::scalar_numel}), step.decision,
          step.rounding};
}

ParameterGroups make_parameter_groups(const config::OptimizerSettings& settings,
                                      std::vector<std::string> undecayed) {
  const bool spares = !settings.decays_all && rules::weight_decay(settings.rule) > 0;
  if (!spares || undecayed.empty()) return ParameterGroups(settings.rule);
  const ParameterGroup rest{.optimizer = Optimizer(settings.rule)};
  const ParameterGroup spared{.optimizer = Optimizer(rules::without_decay(settings.rule)),
                              .names = std::move(undecayed)};
  return ParameterGroups(std::vector{rest, spared});
}

}  // namespace dstrain::optim
