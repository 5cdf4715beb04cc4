#pragma once
#include <string>

#include "cmd/bench/options.h"

namespace dstrain::bench {

/// Times the AdamW step, with and without a bf16 working copy, and a loop that reads and writes the
/// same bytes without arithmetic, in turns, and returns what to print.
std::string run_adam(const Options& options);

}  // namespace dstrain::bench
