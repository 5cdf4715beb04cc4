#pragma once
#include <vector>

#include "runtime/rules/registry.h"

namespace dstrain::test {

/// The settings of each update rule, with weight decay where it has one.
inline std::vector<rules::Settings> every_rule() {
  std::vector<rules::Settings> all;
  rules::Rules::for_each([&all](auto rule) {
    typename decltype(rule)::Settings settings;
    if constexpr (requires { settings.weight_decay; }) settings.weight_decay = 0.1;
    all.emplace_back(settings);
  });
  return all;
}

}  // namespace dstrain::test
