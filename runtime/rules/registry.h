#pragma once
#include <algorithm>
#include <optional>
#include <span>

#include "runtime/rules/adam.h"
#include "runtime/rules/lamb.h"
#include "runtime/rules/lion.h"

namespace dstrain::rules {

template <class... Rule>
struct List {
  using Settings = std::variant<typename Rule::Settings...>;

  /// Calls `body` with a value of the rule that has this number.
  template <class Body>
  static constexpr void visit(std::size_t number, const Body& body) {
    std::size_t each = 0;
    ((each++ == number ? body(Rule{}) : void()), ...);
  }
  /// Calls `body` with a value of each rule.
  template <class Body>
  static constexpr void for_each(const Body& body) {
    (body(Rule{}), ...);
  }
  /// Whether `property` holds for one of the rules.
  template <class Property>
  static constexpr bool any_of(const Property& property) {
    return (property(Rule{}) || ...);
  }

  static_assert(((sizeof(typename Rule::Scalars) <= scalar_numel * sizeof(float)) && ...));
  static_assert(((Rule::states.size() <= states_max) && ...));
};

/// All update rules. No file format depends on their order.
using Rules = List<Adam, Lamb, Lion>;

/// The settings of one of them; the index is the rule's number.
using Settings = Rules::Settings;

template <class Rule>
concept Layerwise = requires {
  &Rule::trust_ratio;
};

constexpr bool has_type(std::string_view type) {
  return Rules::any_of([type](auto rule) {
    return std::find(rule.types.begin(), rule.types.end(), type) != rule.types.end();
  });
}

/// Whether one of the rules has this parameter; all have "lr".
constexpr bool has_parameter(std::string_view key) {
  return key == "lr" || Rules::any_of([key](auto rule) {
           return std::any_of(rule.parameters.begin(), rule.parameters.end(),
                              [key](const auto& parameter) { return parameter.key == key; });
         });
}

/// Calls `body` with a value of the rule and its settings.
template <class Body>
void visit(const Settings& settings, const Body& body) {
  Rules::visit(settings.index(), [&](auto rule) {
    body(rule, std::get<typename decltype(rule)::Settings>(settings));
  });
}

/// Calls `body` with each parameter's key and its value: a double, a bool or Betas. `settings`:
/// Settings, or a constant of them.
template <class AnySettings, class Body>
void for_each_parameter(AnySettings& settings, const Body& body) {
  Rules::visit(settings.index(), [&](auto rule) {
    auto& own = std::get<typename decltype(rule)::Settings>(settings);
    for (const auto& parameter : rule.parameters) {
      std::visit([&](auto member) { body(parameter.key, own.*member); }, parameter.member);
    }
  });
}

/// DeepSpeed's defaults for a type; nothing: no rule has it.
std::optional<Settings> defaults_of(std::string_view type);

std::string_view type_of(const Settings& settings);
/// How the rule differs from DeepSpeed's of that type, in a few words; empty: not at all.
std::string_view difference(const Settings& settings);
double default_learning_rate(const Settings& settings);
/// Names of the states, one float per element each, zero at the start.
std::span<const std::string_view> state_names(const Settings& settings);
bool is_layerwise(std::size_t rule);
inline bool is_layerwise(const Settings& settings) {
  return is_layerwise(settings.index());
}
/// 0 for rules without weight decay.
double weight_decay(const Settings& settings);
Settings without_decay(Settings settings);

using ScalarValues = std::array<float, scalar_numel>;
ScalarValues scalars(const Settings& settings, const Step& step);

}  // namespace dstrain::rules
