#pragma once
#include <vector>

#include "runtime/comm/hierarchical/node_map.h"

namespace dstrain::comm {

/// Returns the ranks, in order, with which a rank of a HierarchicalCommunicator exchanges messages
/// in collectives other than all_to_all; each of them has this rank among its own. With K nodes of
/// g ranks each, there are at most three, with two exceptions: the first rank of a node also
/// receives sums from the ranks of the previous node (g more), and the ranks of the last node send
/// sums to their owners on all nodes (K - 1).
std::vector<int> linked_ranks(const NodeMap& map, int rank);

}  // namespace dstrain::comm
