#pragma once
#include <string>

#include "cmd/train_setup.h"

namespace dstrain::cmd {

/// By which changes, each made alone, a run takes less device memory, and what a rank needs then by
/// the plan of such a run: "it would fit with --gradient_checkpointing (1.20 GiB), ...", or need
/// less where none is enough or the `limit` is not known (0). The three that save most, and what is
/// not tried.
std::string describe_savings(const TrainSetup& setup, Bytes limit);

/// The same for the memory of a machine of which `ranks` ranks take their part.
std::string describe_node_savings(const TrainSetup& setup, int ranks, Bytes limit);

}  // namespace dstrain::cmd
