#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/optim/optimizer.h"

namespace dstrain::optim {

/// Parameters that are updated alike, as in PyTorch's param_groups.
struct ParameterGroup {
  std::unique_ptr<const Optimizer> optimizer = nullptr;  ///< null: they are frozen
  double rate_factor = 1;                                ///< of the learning rate of each step
  std::vector<std::string> names{};  ///< of its parameters; none: all that no other group names
};

/// The groups of a model: each parameter is in one. Gradients and optimizer states exist for what
/// is not frozen; all optimizers keep the same states.
class ParameterGroups {
 public:
  /// Throws Error{internal} where a name is in two groups, two groups take what is left, or states
  /// differ.
  explicit ParameterGroups(std::vector<ParameterGroup> groups);
  /// One group of all parameters.
  explicit ParameterGroups(std::unique_ptr<const Optimizer> optimizer);

  [[nodiscard]] int count() const { return static_cast<int>(groups_.size()); }
  /// That of a parameter. Throws Error{internal} where none has it.
  [[nodiscard]] int group_of(const std::string& parameter) const;
  [[nodiscard]] bool trains(int group) const { return at(group).optimizer != nullptr; }
  /// Of a group that is not frozen.
  [[nodiscard]] const Optimizer& optimizer(int group) const;
  /// Of all that are not frozen.
  [[nodiscard]] std::span<const std::string_view> state_names() const;
  /// Most sums over a parameter that one of the optimizers takes.
  [[nodiscard]] std::int64_t sums() const;
  /// What each optimizer makes of a step, by group; nothing for those that are frozen.
  [[nodiscard]] std::vector<RuleScalars> scalars(const StepScalars& step) const;

 private:
  [[nodiscard]] const ParameterGroup& at(int group) const {
    return groups_.at(static_cast<std::size_t>(group));
  }
  std::vector<ParameterGroup> groups_;
};

}  // namespace dstrain::optim
