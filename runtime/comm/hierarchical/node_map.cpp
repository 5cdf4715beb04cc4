#include "runtime/comm/hierarchical/node_map.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "runtime/base/error.h"
#include "runtime/comm/group_barrier.h"
#include "runtime/os/machine_identity.h"

namespace dstrain::comm {
namespace {

using Nodes = std::vector<std::vector<int>>;

/// Ranks whose claims have the same value of `member` share a node.
template <class T>
Nodes by(T NodeClaim::*member, const std::vector<NodeClaim>& claims) {
  std::map<T, std::vector<int>> by_node;
  for (int rank = 0; rank < static_cast<int>(claims.size()); ++rank) {
    by_node[claims[static_cast<std::size_t>(rank)].*member].push_back(rank);
  }
  Nodes nodes;
  for (auto& [number, ranks] : by_node) nodes.push_back(std::move(ranks));
  std::ranges::sort(nodes);
  return nodes;
}

Nodes by_local_rank(const std::vector<NodeClaim>& claims) {
  Nodes nodes;
  for (int rank = 0; rank < static_cast<int>(claims.size()); ++rank) {
    const NodeClaim& claim = claims[static_cast<std::size_t>(rank)];
    if (nodes.empty() || claim.local_rank == 0) nodes.emplace_back();
    nodes.back().push_back(rank);
    if (claim.local_rank == static_cast<int>(nodes.back().size()) - 1) continue;
    fail(ErrorCode::config,
         "rank {} says {}={}, which does not follow the rank before: set {} on "
         "all ranks, as the launcher does",
         rank, env::local_rank, claim.local_rank, env::cross_rank);
  }
  return nodes;
}

}  // namespace

int NodeMap::node_of(int rank) const {
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (std::ranges::binary_search(nodes[node], rank)) return static_cast<int>(node);
  }
  fail(ErrorCode::internal, "rank {} is on no node", rank);
}

bool NodeMap::contiguous() const {
  return std::ranges::all_of(nodes, [](const std::vector<int>& ranks) {
    return ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  });
}

NodeMap map_nodes(const std::vector<NodeClaim>& claims) {
  const int world = static_cast<int>(claims.size());
  const auto numbered =
      std::ranges::count_if(claims, [](const NodeClaim& c) { return c.node >= 0; });
  if (numbered != 0 && numbered != world) {
    fail(ErrorCode::config, "{} is set on {} of {} ranks: set it on all or none", env::cross_rank,
         numbered, world);
  }
  const bool one_node =
      std::ranges::all_of(claims, [&](const NodeClaim& c) { return c.local_world_size == world; });
  const bool by_machine =
      std::ranges::all_of(claims, [](const NodeClaim& c) { return c.machine != Digest{}; });
  NodeMap map{numbered != 0 || one_node ? by(&NodeClaim::node, claims)
              : by_machine              ? by(&NodeClaim::machine, claims)
                                        : by_local_rank(claims)};
  for (const std::vector<int>& ranks : map.nodes) {
    for (const int rank : ranks) {
      const NodeClaim& claim = claims[static_cast<std::size_t>(rank)];
      if (claim.local_world_size == static_cast<int>(ranks.size())) continue;
      fail(ErrorCode::config,
           "rank {} says {}={}, but {} ranks are on its node ({}): set {} and {} as the launcher "
           "does",
           rank, env::local_world_size, claim.local_world_size, ranks.size(), name_ranks(ranks),
           env::local_world_size, env::cross_rank);
    }
  }
  return map;
}

NodeMap exchange_nodes(Store& store, const WorkerEnv& worker) {
  const bool numbered = worker.node_rank >= 0 || worker.mpi == MpiKind::none;
  const NodeClaim own{worker.node_rank, worker.local_rank, worker.local_world_size,
                      numbered ? Digest{} : machine_identity()};
  std::vector<NodeClaim> claims;
  for (const std::string& value :
       store.gather("node", {worker.rank, worker.world_size},
                    {reinterpret_cast<const char*>(&own), sizeof(own)}, worker.timeout_seconds)) {
    DSTRAIN_CHECK(value.size() == sizeof(NodeClaim), "a claim of {} bytes", value.size());
    std::memcpy(&claims.emplace_back(), value.data(), value.size());
  }
  return map_nodes(claims);
}

}  // namespace dstrain::comm
