#pragma once
#include <map>
#include <set>
#include <string>

#include "runtime/config/json_value.h"

namespace dstrain::config {

/// Values under their canonical paths, sections without their contents.
using CheckedValues = std::map<std::string, JsonValue, std::less<>>;

struct CheckedConfig {
  CheckedValues values;  ///< those with which nothing is wrong
  /// What the file was meant to give and does not: paths whose values are wrong, and those that
  /// unknown keys are likely to mean.
  std::set<std::string, std::less<>> faulty;
};

/// Compares a configuration with the schema. Everything wrong or without meaning goes to
/// `problems`.
CheckedConfig check_against_schema(const JsonValue& root, Problems& problems);

}  // namespace dstrain::config
