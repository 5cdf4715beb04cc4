#pragma once
#include "runtime/config/train_settings.h"
#include "runtime/model/gpt2_config.h"

namespace dstrain::cmd {

/// The sizes that --model_name_or_path, --config_name and --config_overrides ask for. Throws
/// Error{usage} or Error{input}.
model::Gpt2Config model_config(const config::ModelSettings& settings);

}  // namespace dstrain::cmd
