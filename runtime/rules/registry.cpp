#include "runtime/rules/registry.h"

#include <cstring>

namespace dstrain::rules {
namespace {

/// Returns what `body` returns for the rule of the settings.
template <class Value, class Body>
Value of_rule(const Settings& settings, const Body& body) {
  Value value{};
  visit(settings, [&](auto rule, const auto& own) { value = body(rule, own); });
  return value;
}

}  // namespace

std::optional<Settings> defaults_of(std::string_view type) {
  std::optional<Settings> found;
  Rules::for_each([&](auto rule) {
    if (std::ranges::find(rule.types, type) == rule.types.end()) return;
    found = typename decltype(rule)::Settings{};
  });
  return found;
}

std::string_view type_of(const Settings& settings) {
  return of_rule<std::string_view>(settings, [](auto rule, const auto& own) {
    if constexpr (requires { rule.type_of(own); }) {
      return rule.type_of(own);
    } else {
      return rule.types.front();
    }
  });
}

std::string_view difference(const Settings& settings) {
  return of_rule<std::string_view>(settings, [](auto rule, const auto&) -> std::string_view {
    if constexpr (requires { rule.difference; }) return rule.difference;
    return {};
  });
}

double default_learning_rate(const Settings& settings) {
  return of_rule<double>(settings, [](auto rule, const auto&) { return rule.learning_rate; });
}

std::span<const std::string_view> state_names(const Settings& settings) {
  using Names = std::span<const std::string_view>;
  return of_rule<Names>(settings,
                        [](auto rule, const auto&) { return Names(decltype(rule)::states); });
}

bool is_layerwise(std::size_t rule) {
  bool found = false;
  Rules::visit(rule, [&found](auto own) { found = Layerwise<decltype(own)>; });
  return found;
}

double weight_decay(const Settings& settings) {
  return std::visit(
      [](const auto& own) {
        if constexpr (requires { own.weight_decay; }) {
          return own.weight_decay;
        } else {
          return 0.0;
        }
      },
      settings);
}

Settings without_decay(Settings settings) {
  std::visit(
      [](auto& own) {
        if constexpr (requires { own.weight_decay; }) own.weight_decay = 0;
      },
      settings);
  return settings;
}

ScalarValues scalars(const Settings& settings, const Step& step) {
  return of_rule<ScalarValues>(settings, [&](auto rule, const auto& own) {
    const auto values = rule.scalars(own, step);
    ScalarValues all{};
    std::memcpy(all.data(), &values, sizeof(values));
    return all;
  });
}

}  // namespace dstrain::rules
