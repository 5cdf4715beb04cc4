#include "cmd/dstraind/compute_threads.h"

#include <cstdlib>

#include "runtime/base/parallel_for.h"

namespace dstrain::cmd {

void prepare_compute_threads(const WorkerEnv& worker) {
  if (std::getenv(env::omp_num_threads) == nullptr) limit_compute_threads(core_share(worker));
  flush_denormals_in_compute_threads();
}

}  // namespace dstrain::cmd
