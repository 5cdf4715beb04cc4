// Which ranks of several nodes are connected, and what becomes of those that are not.
#include "runtime/comm/hierarchical/linked_ranks.h"

#include <algorithm>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "tests/comm/conformance.h"
#include "tests/comm/tensors.h"
#include "tests/support/catch.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using comm::Communicator;

namespace {

comm::NodeMap nodes_of(const std::vector<int>& sizes) {
  comm::NodeMap map;
  int rank = 0;
  for (const int size : sizes) {
    std::vector<int>& node = map.nodes.emplace_back();
    while (std::ssize(node) < size) node.push_back(rank++);
  }
  return map;
}

/// Four nodes of two ranks, of which 1 and 4 exchange no messages in a collective.
test::GroupMaker four_nodes() {
  return test::hierarchical_groups({2});
}

void exchange(Communicator& with, int peer) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  test::Floats mine = test::values_of(with.rank(), 1000);
  test::Floats theirs(mine.size());
  const auto send = [&] {
    with.send(test::view(mine), peer, stream);
  };
  if (with.rank() < peer) send();
  with.receive(test::view(theirs), peer, stream);
  if (with.rank() > peer) send();
  test::require(test::same_bits(theirs, test::values_of(peer, 1000)), "an exchange");
}

}  // namespace

TEST_CASE("linked_ranks: both ends list each link", "[comm]") {
  const auto sizes = GENERATE(values<std::vector<int>>(
      {{2, 2}, {1, 1, 1}, {3, 1, 2}, {1, 4}, {4, 1}, {2, 3, 2}, {8, 8, 8, 8}}));
  const comm::NodeMap map = nodes_of(sizes);
  const int size = map.nodes.back().back() + 1;
  for (int rank = 0; rank < size; ++rank) {
    const std::vector<int> links = comm::linked_ranks(map, rank);
    CHECK(std::ranges::is_sorted(links));
    CHECK_FALSE(std::ranges::binary_search(links, rank));
    for (const int other : links) {
      CHECK(std::ranges::binary_search(comm::linked_ranks(map, other), rank));
    }
  }
}

TEST_CASE("linked_ranks: with many nodes each rank has few links", "[comm]") {
  const comm::NodeMap map = nodes_of(std::vector<int>(128, 8));
  for (int rank = 0; rank < 127 * 8; ++rank) {
    CAPTURE(rank);
    CHECK(comm::linked_ranks(map, rank).size() <= (rank % 8 == 0 ? 12 : 4));
  }
  CHECK(comm::linked_ranks(map, 1023).size() == 127);
}

TEST_CASE("HierarchicalCommunicator: ranks that are not linked exchange messages", "[comm]") {
  const auto group = four_nodes().make(8, test::hang_seconds);
  REQUIRE_NOTHROW(test::run_group(group, [](Communicator& rank) {
    for (const int twice : {0, 1}) {
      static_cast<void>(twice);
      for (int peer = 0; peer < rank.size(); ++peer) {
        for (int other = 0; other < peer; ++other) {
          if (rank.rank() == peer) exchange(rank, other);
          if (rank.rank() == other) exchange(rank, peer);
        }
      }
    }
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    std::vector<std::int32_t> parts;
    for (int to = 0; to < rank.size(); ++to) parts.push_back(100 * rank.rank() + to);
    std::vector<std::int32_t> received(parts.size());
    const HostView from(reinterpret_cast<std::byte*>(parts.data()), DType::i32, Shape{8});
    const HostView to(reinterpret_cast<std::byte*>(received.data()), DType::i32, Shape{8});
    rank.all_to_all(from, to, stream);
    for (int source = 0; source < rank.size(); ++source) {
      test::require(received[static_cast<std::size_t>(source)] == 100 * source + rank.rank(),
                    "all_to_all after messages");
    }
  }));
}

TEST_CASE("HierarchicalCommunicator: a rank missing at a first message is named", "[comm]") {
  const auto group = four_nodes().make(8, 0.3);
  const auto failures = test::failures_of_ranks(group, [](Communicator& rank) {
    if (rank.rank() == 1) exchange(rank, 4);
  });
  CHECK(failures[1].code == ErrorCode::timeout);
  CHECK_THAT(failures[1].message,
             ContainsSubstring("send of 1000 f32 to rank 4") &&
                 ContainsSubstring("timed out after 0.3 s: waiting for rank 4"));
}

TEST_CASE("HierarchicalCommunicator: an abort ends the wait for a first message", "[comm]") {
  const auto group = four_nodes().make(8, test::hang_seconds);
  const auto failures = test::failures_of_ranks(group, [](Communicator& rank) {
    if (rank.rank() == 1) exchange(rank, 4);
    if (rank.rank() == 6) rank.abort();
  });
  CHECK(failures[1].code == ErrorCode::aborted);
  CHECK_THAT(failures[1].message, ContainsSubstring("aborted by rank 6"));
}
