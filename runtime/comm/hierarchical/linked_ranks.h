#pragma once
#include <vector>

#include "runtime/comm/hierarchical/node_map.h"

namespace dstrain::comm {

/// The ranks with which a rank of a HierarchicalCommunicator exchanges messages in collectives
/// other than all_to_all, in order; each of them has this rank among its own. With K nodes of g
/// ranks each these are at most three, but for the first rank of a node, to which those of the node
/// before send their sums (g more), and for the ranks of the last node, which send the sums to
/// their owners on all nodes (K - 1).
std::vector<int> linked_ranks(const NodeMap& map, int rank);

}  // namespace dstrain::comm
