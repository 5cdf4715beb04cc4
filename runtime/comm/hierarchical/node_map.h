#pragma once
#include <vector>

#include "runtime/base/sha256.h"
#include "runtime/comm/store.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::comm {

/// The ranks of each node. Nodes are numbered by their first rank.
struct NodeMap {
  std::vector<std::vector<int>> nodes;  ///< the ranks of each, in order

  [[nodiscard]] int node_of(int rank) const;
  /// Whether the ranks of each node follow each other: 0 1 2 | 3 4, and not 0 2 4 | 1 3.
  [[nodiscard]] bool contiguous() const;
};

/// A rank's statement of its location.
struct NodeClaim {
  int node = -1;  ///< CROSS_RANK; -1: not given
  int local_rank = 0;
  int local_world_size = 1;
  /// The machine that the rank runs on, if mpirun has started it, which does not number nodes; else
  /// zeros.
  Digest machine{};
};

/// Returns the nodes that the claims of all ranks, by rank, describe. If no rank gives its node,
/// the ranks of one machine form a node. If none gives its machine either, all are on one node if
/// their local world is the world; else a node begins at each local rank 0. Throws Error{config}
/// that names the rank whose claim does not fit.
NodeMap map_nodes(const std::vector<NodeClaim>& claims);

/// Exchanges the claims of all ranks. Every rank calls it, once per store.
NodeMap exchange_nodes(Store& store, const WorkerEnv& worker);

}  // namespace dstrain::comm
