#pragma once
#include <string>

#include "cmd/bench/options.h"

namespace dstrain::bench {

/// Times the products of a training step in fp32 and bf16 and the peak loops, in turns, and returns
/// what to print.
std::string run_gemm(const Options& options);

}  // namespace dstrain::bench
