#pragma once
#include <map>
#include <string>

#include "runtime/config/json_value.h"

namespace dstrain::config {

using CheckedValues = std::map<std::string, JsonValue, std::less<>>;

/// Compares a configuration with the schema and returns its values under their canonical paths
/// (sections without their contents). Everything wrong or without meaning goes to `problems`.
CheckedValues check_against_schema(const JsonValue& root, Problems& problems);

}  // namespace dstrain::config
