#include "runtime/comm/hierarchical/linked_ranks.h"

#include <algorithm>
#include <set>

namespace dstrain::comm {
namespace {

using Ranks = std::vector<int>;

/// The pairs of ranks that are connected.
class Links {
 public:
  explicit Links(int rank) : rank_(rank) {}

  void add(int left, int right) {
    if (left == right) return;
    if (left == rank_) others_.insert(right);
    if (right == rank_) others_.insert(left);
  }
  [[nodiscard]] Ranks others() const { return {others_.begin(), others_.end()}; }

 private:
  int rank_;
  std::set<int> others_;
};

std::size_t most_ranks(const NodeMap& map) {
  std::size_t most = 0;
  for (const Ranks& node : map.nodes) most = std::max(most, node.size());
  return most;
}

/// Shards and broadcasts go around a ring of nodes; the ranks of each share the shards in turn.
void add_ring(Links& links, const NodeMap& map) {
  const std::size_t most = most_ranks(map);
  for (std::size_t k = 0; k < map.nodes.size(); ++k) {
    const Ranks& node = map.nodes[k];
    const Ranks& next = map.nodes[(k + 1) % map.nodes.size()];
    for (std::size_t i = 0; i < most; ++i) links.add(node[i % node.size()], next[i % next.size()]);
  }
}

/// Sums go from the ranks of each node to the first of the next.
void add_chain(Links& links, const NodeMap& map) {
  for (std::size_t k = 0; k + 1 < map.nodes.size(); ++k) {
    for (const int rank : map.nodes[k]) links.add(rank, map.nodes[k + 1].front());
  }
}

/// Sums go from the last node to their owners. If that node has as many ranks as the owners' node,
/// each ends with the part that one of them owns.
void add_delivery(Links& links, const NodeMap& map) {
  const Ranks& last = map.nodes.back();
  for (const Ranks& node : map.nodes) {
    for (std::size_t i = 0; i < node.size(); ++i) {
      for (std::size_t j = 0; j < last.size(); ++j) {
        if (node.size() != last.size() || i == j) links.add(node[i], last[j]);
      }
    }
  }
}

}  // namespace

std::vector<int> linked_ranks(const NodeMap& map, int rank) {
  Links links(rank);
  add_ring(links, map);
  add_chain(links, map);
  add_delivery(links, map);
  return links.others();
}

}  // namespace dstrain::comm
