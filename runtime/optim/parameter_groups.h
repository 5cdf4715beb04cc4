#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/optimizer_settings.h"
#include "runtime/optim/optimizer.h"

namespace dstrain::optim {

/// Parameters that are updated alike, as in PyTorch's param_groups.
struct ParameterGroup {
  std::optional<Optimizer> optimizer{};  ///< nothing: they are frozen
  double rate_factor = 1;                ///< of the learning rate of each step
  std::vector<std::string> names{};      ///< of its parameters; none: all that no other group names
};

/// The groups of a model: each parameter is in one. Gradients and optimizer states exist for what
/// is not frozen; all optimizers keep the same states.
class ParameterGroups {
 public:
  /// Throws Error{internal} where a name is in two groups, two groups take what is left, or states
  /// differ.
  explicit ParameterGroups(std::vector<ParameterGroup> groups);
  /// One group of all parameters.
  explicit ParameterGroups(const rules::Settings& rule);

  [[nodiscard]] int count() const { return static_cast<int>(groups_.size()); }
  /// That of a parameter. Throws Error{internal} where none has it.
  [[nodiscard]] int group_of(const std::string& parameter) const;
  [[nodiscard]] bool trains(int group) const { return at(group).optimizer.has_value(); }
  /// Of a group that is not frozen.
  [[nodiscard]] const Optimizer& optimizer(int group) const;
  /// Of all that are not frozen.
  [[nodiscard]] std::span<const std::string_view> state_names() const;
  /// Most sums over a parameter that one of the optimizers takes.
  [[nodiscard]] std::int64_t sums() const;
  /// What each optimizer makes of a step, by group; nothing for those that are frozen.
  [[nodiscard]] std::vector<rules::ScalarValues> scalars(const rules::Step& step) const;

 private:
  [[nodiscard]] const ParameterGroup& at(int group) const {
    return groups_.at(static_cast<std::size_t>(group));
  }
  std::vector<ParameterGroup> groups_;
};

/// The groups of a run: one of all parameters, as DeepSpeed makes of a configuration, or a second
/// one of those that the settings do not decay. `undecayed`: the names of biases and norm weights.
ParameterGroups make_parameter_groups(const config::OptimizerSettings& settings,
                                      std::vector<std::string> undecayed);

}  // namespace dstrain::optim
