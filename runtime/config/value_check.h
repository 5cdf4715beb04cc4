#pragma once
#include <string>
#include <string_view>

#include "runtime/config/json_value.h"
#include "runtime/config/schema.h"

namespace dstrain::config {

/// Checks the type, range and status of one value after resolve_word(). `path` is as the file
/// spells it.
void check_value(const Key& key,
                 const JsonValue& value,
                 const std::string& path,
                 Problems& problems);

/// Whether a value is one of "a|b|null": strings, numbers, true, false or null.
bool is_one_of(const JsonValue& value, std::string_view choices);

}  // namespace dstrain::config
