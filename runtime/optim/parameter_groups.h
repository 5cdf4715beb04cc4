#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/typed_index.h"
#include "runtime/config/optimizer_settings.h"
#include "runtime/optim/optimizer.h"

namespace dstrain::optim {

/// Parameters with the same update rule and rate, as in PyTorch's param_groups.
struct ParameterGroup {
  std::optional<Optimizer> optimizer{};  ///< none: they are frozen
  double rate_factor = 1;                ///< of the learning rate of each step
  std::vector<std::string> names{};  ///< of its parameters; empty: all that no other group names
};

/// Index of one of ParameterGroups.
enum class ParameterGroupId : int {};

/// The groups of a model; each parameter is in one. Groups that are not frozen have gradients and
/// optimizer states; all their optimizers keep the same states.
class ParameterGroups {
 public:
  /// Throws Error{internal} if a name is in two groups, if two groups take the remaining
  /// parameters, or if the states differ.
  explicit ParameterGroups(std::vector<ParameterGroup> groups);
  /// One group of all parameters.
  explicit ParameterGroups(const rules::Settings& rule);

  [[nodiscard]] int count() const { return groups_.ids().size(); }
  /// The group of a parameter. Throws Error{internal} if none has it.
  [[nodiscard]] ParameterGroupId group_of(const std::string& parameter) const;
  [[nodiscard]] bool trains(ParameterGroupId group) const {
    return groups_[group].optimizer.has_value();
  }
  /// The optimizer of a group that is not frozen.
  [[nodiscard]] const Optimizer& optimizer(ParameterGroupId group) const;
  /// The states of all groups that are not frozen.
  [[nodiscard]] std::span<const std::string_view> state_names() const;
  /// The most sums over a parameter that one of the optimizers needs.
  [[nodiscard]] std::int64_t sums() const;
  /// The scalars of a step, by group; empty for frozen groups.
  [[nodiscard]] TypedVector<ParameterGroupId, rules::ScalarValues> scalars(
      const rules::Step& step) const;

 private:
  TypedVector<ParameterGroupId, ParameterGroup> groups_;
};

/// Selects the scalars of one group from those of all groups in `step`.
StepTensors tensors_of(const StepTensors& step, ParameterGroupId group);

/// The groups of a run: one of all parameters, as DeepSpeed makes from a configuration, and a
/// second one of the parameters that the settings do not decay. `undecayed`: the names of biases
/// and norm weights.
ParameterGroups make_parameter_groups(const config::OptimizerSettings& settings,
                                      std::vector<std::string> undecayed);

}  // namespace dstrain::optim
