#include "runtime/comm/hierarchical/node_map.h"

#include "tests/support/catch.h"

using namespace dstrain;
using comm::NodeClaim;

namespace {

using Nodes = std::vector<std::vector<int>>;

/// As mpirun's ranks do, which number no nodes.
NodeClaim on_machine(const char* name, int local_rank, int local_world_size) {
  return {-1, local_rank, local_world_size, sha256(name)};
}

}  // namespace

TEST_CASE("NodeMap: nodes follow the claims of the ranks", "[comm]") {
  struct Row {
    std::vector<NodeClaim> claims;
    Nodes nodes;
    bool contiguous;
  };
  const auto row = GENERATE(
      Row{{{0, 0, 1}}, {{0}}, true}, Row{{{-1, 0, 2}, {-1, 1, 2}}, {{0, 1}}, true},
      Row{{{-1, 0, 2}, {-1, 0, 2}}, {{0, 1}}, true},  // LOCAL_RANK not set: all on one node
      Row{{{-1, 0, 2}, {-1, 1, 2}, {-1, 0, 1}}, {{0, 1}, {2}}, true},
      Row{{{0, 0, 2}, {0, 1, 2}, {1, 0, 1}}, {{0, 1}, {2}}, true},
      Row{{on_machine("b", 0, 1), on_machine("a", 0, 2), on_machine("a", 1, 2)},
          {{0}, {1, 2}},
          true},
      Row{{{5, 0, 1}, {2, 0, 1}}, {{0}, {1}}, true},  // numbered by the first rank
      Row{{{0, 0, 2}, {1, 0, 2}, {0, 1, 2}, {1, 1, 2}}, {{0, 2}, {1, 3}}, false});
  const comm::NodeMap map = comm::map_nodes(row.claims);
  CHECK(map.nodes == row.nodes);
  CHECK(map.contiguous() == row.contiguous);
  for (int node = 0; node < static_cast<int>(row.nodes.size()); ++node) {
    for (const int rank : row.nodes[static_cast<std::size_t>(node)]) {
      CHECK(map.node_of(rank) == node);
    }
  }
}

TEST_CASE("NodeMap: contradictory claims are reported", "[comm]") {
  struct Row {
    std::vector<NodeClaim> claims;
    std::string message;
  };
  const auto row = GENERATE(
      Row{{{0, 0, 1}, {-1, 0, 1}}, "CROSS_RANK is set on 1 of 2 ranks: set it on all or none"},
      Row{{{0, 0, 2}, {0, 1, 2}, {1, 0, 2}},
          "rank 2 says LOCAL_WORLD_SIZE=2, but 1 ranks are on its node (rank 2): set "
          "LOCAL_WORLD_SIZE and CROSS_RANK as the launcher does"},
      Row{{{-1, 0, 2}, {-1, 0, 2}, {-1, 1, 2}},
          "rank 0 says LOCAL_WORLD_SIZE=2, but 1 ranks are on its node (rank 0): set "
          "LOCAL_WORLD_SIZE and CROSS_RANK as the launcher does"},
      Row{{{-1, 0, 2}, {-1, 2, 2}, {-1, 1, 2}},
          "rank 1 says LOCAL_RANK=2, which does not follow the rank before: set CROSS_RANK on all "
          "ranks, as the launcher does"});
  CHECK_THROWS_WITH(comm::map_nodes(row.claims), row.message);
}
