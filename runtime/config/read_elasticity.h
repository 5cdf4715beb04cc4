#pragma once
#include <optional>

#include "runtime/config/ds_config.h"
#include "runtime/config/elasticity.h"
#include "runtime/config/train_options.h"

namespace dstrain::config {

/// Whether the section "elasticity" determines the batch.
bool elasticity_enabled(const DsConfig& config);

/// Reads that section, which is enabled. Returns nothing and adds to `problems` if required values
/// are missing, or if dstrain does not support it. A batch size from the file or options is also a
/// problem, or a warning if the section says to ignore it.
std::optional<Elasticity> read_elasticity(const TrainOptions& options,
                                          const DsConfig& config,
                                          Problems& problems);

}  // namespace dstrain::config
