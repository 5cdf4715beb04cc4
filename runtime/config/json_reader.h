#pragma once
#include <string_view>

#include "runtime/base/units.h"
#include "runtime/config/json_value.h"

namespace dstrain::config {

constexpr Bytes json_bytes_max = mebibyte;
constexpr int json_depth_max = 32;

/// Reads a JSON object. Also accepts comments (//, # and /* */), trailing commas, a UTF-8 byte
/// order mark, and from HJSON: no outer braces, no commas at line ends, no quotes around keys.
/// Strict otherwise. Adds duplicate keys to `problems` and keeps the first one. If the text is not
/// JSON, too large or too deep, throws Error{config} with that and all earlier problems.
/// (nlohmann/json reports no positions and keeps the last of two keys.)
JsonValue read_json(std::string_view text, Problems& problems);

}  // namespace dstrain::config
