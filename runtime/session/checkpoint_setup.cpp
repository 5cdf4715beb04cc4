#include "runtime/session/checkpoint_setup.h"

#include <algorithm>
#include <numeric>

#include "runtime/comm/hierarchical/node_map.h"
#include "runtime/os/visibility.h"

namespace dstrain::session {

std::vector<int> directory_ranks(comm::ControlGroup& control,
                                 const WorkerEnv& worker,
                                 const config::CheckpointSettings& settings) {
  if (settings.node_local) {
    const comm::NodeMap map = comm::map_nodes(control.gather(
        comm::NodeClaim{worker.node_rank, worker.local_rank, worker.local_world_size}));
    return map.nodes[static_cast<std::size_t>(map.node_of(worker.rank))];
  }
  std::vector<int> all(static_cast<std::size_t>(worker.world_size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

double visible_within(const WorkerEnv& worker) {
  return std::min(visible_seconds, worker.timeout_seconds / 2);
}

}  // namespace dstrain::session
