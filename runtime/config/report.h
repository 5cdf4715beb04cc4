#pragma once
#include <string>

#include "runtime/config/resolve.h"

namespace dstrain::config {

/// What a configuration amounts to, as JSON: "effective" (nested as in a ds_config.json), "origin"
/// of each value by its path, and "warnings".
std::string report_json(const Resolved& resolved);

}  // namespace dstrain::config
