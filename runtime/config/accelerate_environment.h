#pragma once
#include "runtime/config/train_settings.h"

namespace dstrain::config {

/// `accelerate launch` tells its scripts by environment variables how to train. dstrain reads its
/// own options alone: throws Error{config} that names each variable that asks for something else
/// than `settings`, and what to type for it.
void check_accelerate_environment(const TrainSettings& settings, bool has_configuration);

}  // namespace dstrain::config
