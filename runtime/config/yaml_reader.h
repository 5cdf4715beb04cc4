#pragma once
#include <string_view>

#include "runtime/config/json_value.h"

namespace dstrain::config {

/// Reads a YAML mapping as JSON: plain words are what YAML 1.1 makes of them (yes, off, ~), and
/// `text` has every scalar as it was written. Adds duplicate keys to `problems` and keeps the first
/// one. If the text is not YAML, too large or too deep, throws Error{config} with that and all
/// earlier problems.
JsonValue read_yaml(std::string_view text, Problems& problems);

}  // namespace dstrain::config
