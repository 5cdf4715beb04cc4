#pragma once
#include <string>

#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// By which changes, each made alone, a run takes less device memory, and what a rank needs then by
/// the plan of such a run: "it would need less with --gradient_checkpointing (1.20 GiB), ...". The
/// three that save most, and what is not tried.
std::string describe_savings(const TrainSetup& setup);

/// The same for the memory of a machine of which `ranks` ranks take their part.
std::string describe_node_savings(const TrainSetup& setup, int ranks);

}  // namespace dstrain::cmd
