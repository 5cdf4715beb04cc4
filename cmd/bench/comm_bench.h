#pragma once
#include <string>

#include "cmd/bench/options.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::bench {

/// Times the collectives of every backend between the ranks of the job, and a copy by all ranks at
/// once, in turns, and returns what to print: on rank 0; the others return nothing. Collective.
std::string run_comm(const Options& options, const WorkerEnv& worker);

}  // namespace dstrain::bench
