#pragma once
#include <optional>

#include "runtime/config/ds_config.h"
#include "runtime/config/elasticity.h"

namespace dstrain::config {

/// Whether the configuration leaves its batch to the section "elasticity".
bool elasticity_enabled(const DsConfig& config);

/// That section, which is enabled. None, with what is wrong added to `problems`, when it does not
/// say what it must, or says what dstrain cannot do.
std::optional<Elasticity> read_elasticity(const DsConfig& config, Problems& problems);

}  // namespace dstrain::config
