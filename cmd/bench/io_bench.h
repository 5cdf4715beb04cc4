#pragma once
#include <string>

#include "cmd/bench/options.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::bench {

/// Times reading, writing and both at once of a swap file for each block size, queue depth and
/// number of threads, beside fio doing the same to the same file, in turns, and returns what to
/// print: a table or JSON with the `aio` section that was fastest.
std::string run_io(const Options& options, IoKind kind);

}  // namespace dstrain::bench
