#pragma once
#include <string>

#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// By which rule a run trains, and where that differs from what Hugging Face's Trainer would do of
/// the same options in a way that this run meets; one line.
std::string describe_rule(const TrainSetup& setup);

}  // namespace dstrain::cmd
