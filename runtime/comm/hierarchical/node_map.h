#pragma once
#include <vector>

#include "runtime/base/sha256.h"
#include "runtime/comm/store.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::comm {

/// Which ranks share a node. Nodes are numbered by their first rank.
struct NodeMap {
  std::vector<std::vector<int>> nodes;  ///< the ranks of each, in order

  [[nodiscard]] int node_of(int rank) const;
  /// Whether the ranks of each node follow each other: 0 1 2 | 3 4, and not 0 2 4 | 1 3.
  [[nodiscard]] bool contiguous() const;
};

/// What each rank says of its place, by rank.
struct NodeClaim {
  int node = -1;  ///< CROSS_RANK; -1: not said
  int local_rank = 0;
  int local_world_size = 1;
  /// The machine it runs on, where mpirun has started it, which numbers no nodes; else zeros.
  Digest machine{};
};

/// The nodes that the claims of all ranks tell. Where no rank says its node, those of one machine
/// are on one; where none says its machine either, all are on one when their local world is the
/// world, else a node begins at each local rank 0. Throws Error{config}
/// that names the rank whose claim does not fit.
NodeMap map_nodes(const std::vector<NodeClaim>& claims);

/// Tells the other ranks the own place and learns theirs. Every rank calls it, once per store.
NodeMap exchange_nodes(Store& store, const WorkerEnv& worker);

}  // namespace dstrain::comm
