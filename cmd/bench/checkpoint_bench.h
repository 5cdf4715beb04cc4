#pragma once
#include <string>

#include "cmd/bench/options.h"

namespace dstrain::bench {

/// Times writing and reading a rank's shard of a checkpoint, flushed and checked, and plain writing
/// and reading of as many bytes, in turns, and returns what to print. Reads come from the disk.
std::string run_checkpoint(const Options& options);

}  // namespace dstrain::bench
