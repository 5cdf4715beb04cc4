#pragma once
#include <optional>

#include "runtime/config/ds_config.h"
#include "runtime/config/elasticity.h"
#include "runtime/config/train_options.h"

namespace dstrain::config {

/// Whether the configuration leaves its batch to the section "elasticity".
bool elasticity_enabled(const DsConfig& config);

/// That section, which is enabled. None, with what is wrong added to `problems`, when it does not
/// say what it must, or says what dstrain cannot do. A size of the batch that file or options give
/// beside it is a problem too, or a warning where the section says that it counts for nothing.
std::optional<Elasticity> read_elasticity(const TrainOptions& options,
                                          const DsConfig& config,
                                          Problems& problems);

}  // namespace dstrain::config
