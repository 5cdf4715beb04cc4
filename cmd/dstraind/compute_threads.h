#pragma once
#include "runtime/base/worker_env.h"

namespace dstrain::cmd {

/// Gives the loops of the calling thread the rank's share of the node's cores (core_share()),
/// unless OMP_NUM_THREADS says how many, and makes them flush denormals.
void prepare_compute_threads(const WorkerEnv& worker);

}  // namespace dstrain::cmd
