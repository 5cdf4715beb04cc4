#pragma once
#include <map>
#include <set>
#include <string>

#include "runtime/config/json_value.h"

namespace dstrain::config {

/// Values by canonical path; sections without their contents.
using CheckedValues = std::map<std::string, JsonValue, std::less<>>;

struct CheckedConfig {
  CheckedValues values;  ///< only the valid ones
  /// Paths that were given in vain: those with wrong values, and those that unknown keys probably
  /// mean.
  std::set<std::string, std::less<>> faulty;
};

/// Checks a configuration against the schema. Adds everything that is wrong or without effect to
/// `problems`.
CheckedConfig check_against_schema(const JsonValue& root, Problems& problems);

}  // namespace dstrain::config
