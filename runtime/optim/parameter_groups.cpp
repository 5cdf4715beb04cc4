#include "runtime/optim/parameter_groups.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::optim {
namespace {

std::vector<ParameterGroup> one_group(std::unique_ptr<const Optimizer> optimizer) {
  std::vector<ParameterGroup> groups;
  groups.push_back({.optimizer = std::move(optimizer)});
  return groups;
}

bool takes_rest(const ParameterGroup& group) {
  return group.names.empty();
}

void check_names(const std::vector<ParameterGroup>& groups) {
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
    DSTRAIN_CHECK(group.optimizer == nullptr ||
                      std::ranges::equal(group.optimizer->state_names(), state_names()),
                  "optimizers of two groups keep different states");
  }
}

ParameterGroups::ParameterGroups(std::unique_ptr<const Optimizer> optimizer)
    : ParameterGroups(one_group(std::move(optimizer))) {}

int ParameterGroups::group_of(const std::string& parameter) const {
  const auto names_it = [&parameter](const ParameterGroup& group) {
    return std::ranges::find(group.names, parameter) != group.names.end();
  };
  auto found = std::ranges::find_if(groups_, names_it);
  if (found == groups_.end()) found = std::ranges::find_if(groups_, takes_rest);
  DSTRAIN_CHECK(found != groups_.end(), "{} is in no group", parameter);
  return static_cast<int>(found - groups_.begin());
}

const Optimizer& ParameterGroups::optimizer(int group) const {
  DSTRAIN_CHECK(trains(group), "group {} is frozen", group);
  return *at(group).optimizer;
}

std::span<const std::string_view> ParameterGroups::state_names() const {
  for (const ParameterGroup& group : groups_) {
    if (group.optimizer != nullptr) return group.optimizer->state_names();
  }
  return {};
}

std::int64_t ParameterGroups::sums() const {
  std::int64_t most = 0;
  for (const ParameterGroup& group : groups_) {
    if (group.optimizer != nullptr) most = std::max(most, group.optimizer->sums());
  }
  return most;
}

std::vector<RuleScalars> ParameterGroups::scalars(const StepScalars& step) const {
  std::vector<RuleScalars> scalars;
  for (const ParameterGroup& group : groups_) {
    StepScalars own = step;
    own.learning_rate *= group.rate_factor;
    scalars.push_back(group.optimizer == nullptr ? RuleScalars{} : group.optimizer->scalars(own));
  }
  return scalars;
}

}  // namespace dstrain::optim
