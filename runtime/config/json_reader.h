#pragma once
#include <string_view>

#include "runtime/base/units.h"
#include "runtime/config/json_value.h"

namespace dstrain::config {

constexpr Bytes json_bytes_max = mebibyte;
constexpr int json_depth_max = 32;

/// Reads a JSON object that may have comments (//, # and /* */), trailing commas and a UTF-8 byte
/// order mark, and of HJSON: no braces around the whole, no commas at the ends of lines, no quotes
/// around keys. Strict otherwise. Duplicate keys are added to `problems`, the first one stays; at a
/// text that is no JSON, or too large or too deep, throws Error{config} with that and all earlier
/// problems. (nlohmann/json does not tell where a value stands and keeps the last of two keys.)
JsonValue read_json(std::string_view text, Problems& problems);

}  // namespace dstrain::config
