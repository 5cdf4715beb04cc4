#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/typed_index.h"
#include "runtime/config/optimizer_settings.h"
#include "runtime/optim/optimizer.h"

namespace dstrain::optim {

/// Parameters that are updated alike, as in PyTorch's param_groups.
struct ParameterGroup {
  std::optional<Optimizer> optimizer{};  ///< nothing: they are frozen
  double rate_factor = 1;                ///< of the learning rate of each step
  std::vector<std::string> names{};      ///< of its parameters; none: all that no other group names
};

/// Index of one of ParameterGroups.
enum class ParameterGroupId : int {};

/// The groups of a model: each parameter is in one. Gradients and optimizer states exist for what
/// is not frozen; all optimizers keep the same states.
class ParameterGroups {
 public:
  /// Throws Error{internal} where a name is in two groups, two groups take what is left, or states
  /// differ.
  explicit ParameterGroups(std::vector<ParameterGroup> groups);
  /// One group of all parameters.
  explicit ParameterGroups(const rules::Settings& rule);

  [[nodiscard]] int count() const { return groups_.ids().size(); }
  /// That of a parameter. Throws Error{internal} where none has it.
  [[nodiscard]] ParameterGroupId group_of(const std::string& parameter) const;
  [[nodiscard]] bool trains(ParameterGroupId group) const {
    return groups_[group].optimizer.has_value();
  }
  /// Of a group that is not frozen.
  [[nodiscard]] const Optimizer& optimizer(ParameterGroupId group) const;
  /// Of all that are not frozen.
  [[nodiscard]] std::span<const std::string_view> state_names() const;
  /// Most sums over a parameter that one of the optimizers takes.
  [[nodiscard]] std::int64_t sums() const;
  /// What each optimizer makes of a step, by group; nothing for those that are frozen.
  [[nodiscard]] TypedVector<ParameterGroupId, rules::ScalarValues> scalars(
      const rules::Step& step) const;

 private:
  TypedVector<ParameterGroupId, ParameterGroup> groups_;
};

/// What the update of one group reads of `step`, which has a row of scalars for each group.
StepTensors tensors_of(const StepTensors& step, ParameterGroupId group);

/// The groups of a run: one of all parameters, as DeepSpeed makes of a configuration, or a second
/// one of those that the settings do not decay. `undecayed`: the names of biases and norm weights.
ParameterGroups make_parameter_groups(const config::OptimizerSettings& settings,
                                      std::vector<std::string> undecayed);

}  // namespace dstrain::optim
