#include "tests/comm/groups.h"

#include <fmt/ranges.h>

#include "runtime/comm/control/hierarchical_control_group.h"
#include "runtime/comm/hierarchical/hierarchical_communicator.h"
#include "runtime/comm/shm/segment_exchange.h"
#include "runtime/comm/shm/shm_communicator.h"
#include "runtime/comm/staged_communicator.h"
#include "runtime/comm/tcp/tcp_transport.h"
#include "runtime/comm/thread/thread_communicator.h"
#include "tests/comm/memory_store.h"
#include "tests/support/ranks.h"

namespace dstrain::test {
namespace {

comm::NodeMap map_in_turn(int size, const std::vector<int>& ranks_per_node) {
  comm::NodeMap map;
  for (int rank = 0; rank < size; ++rank) {
    const auto turn = static_cast<std::size_t>(std::ssize(map.nodes) - 1) % ranks_per_node.size();
    if (map.nodes.empty() || std::ssize(map.nodes.back()) == ranks_per_node[turn]) {
      map.nodes.emplace_back();
    }
    map.nodes.back().push_back(rank);
  }
  return map;
}

comm::NodeMap map_round_robin(int size) {
  comm::NodeMap map;
  for (int rank = 0; rank < size; ++rank) {
    if (rank < 2) map.nodes.emplace_back();
    map.nodes[static_cast<std::size_t>(rank % 2)].push_back(rank);
  }
  return map;
}

/// `join(store, rank)` on a thread per rank.
Group join_threads(
    int size, const std::function<std::unique_ptr<comm::Communicator>(comm::Store&, int)>& join) {
  const auto store = std::make_shared<MemoryStore>();
  Group::Members members(static_cast<std::size_t>(size));
  run_ranks(size, [&](int rank) { members[static_cast<std::size_t>(rank)] = join(*store, rank); });
  return {std::move(members), store};
}

Group join_nodes(int size, double timeout_seconds, const comm::NodeMap& map) {
  Group::Members within(static_cast<std::size_t>(size));
  std::vector<std::shared_ptr<const comm::Segment>> segments;
  for (const std::vector<int>& ranks : map.nodes) {
    auto node = comm::make_thread_group(static_cast<int>(ranks.size()), timeout_seconds);
    segments.push_back(std::make_shared<const comm::Segment>(
        comm::Segment::create(static_cast<int>(ranks.size()), 0)));
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      within[static_cast<std::size_t>(ranks[i])] = std::move(node[i]);
    }
  }
  return join_threads(size, [&](comm::Store& store, int rank) {
    comm::TcpOptions tcp{.rank = rank, .size = size, .timeout_seconds = timeout_seconds};
    auto transport = comm::make_tcp_transport(store, tcp);
    tcp.name += "/control";
    auto control = std::make_unique<comm::HierarchicalControlGroup>(
        store, tcp, map, segments[static_cast<std::size_t>(map.node_of(rank))]);
    return comm::make_hierarchical({std::move(transport), std::move(control)},
                                   std::move(within[static_cast<std::size_t>(rank)]), map,
                                   timeout_seconds);
  });
}

}  // namespace

void Group::abort() const {
  for (const auto& member : members_) {
    if (member) return member->abort();
  }
}

void Group::tell(int rank, const std::string& text) const {
  store_->set(fmt::format("{}/told/{}", name_, rank), text);
}

std::string Group::told(int rank) const {
  return store_->get(fmt::format("{}/told/{}", name_, rank), hang_seconds);
}

GroupMaker thread_groups() {
  return {"thread", [](int size, double timeout_seconds) {
            return Group(comm::make_thread_group(size, timeout_seconds),
                         std::make_shared<MemoryStore>());
          }};
}

GroupMaker staged_groups(Bytes staging) {
  return {"staged", [staging](int size, double timeout_seconds) {
            static HostMemory memory;
            Group::Members members = comm::make_thread_group(size, timeout_seconds);
            for (auto& member : members) {
              member = std::make_unique<comm::StagedCommunicator>(
                  std::move(member), comm::StagedCommunicator::Staging{memory, staging});
            }
            return Group(std::move(members), std::make_shared<MemoryStore>());
          }};
}

GroupMaker shm_groups() {
  return {"shm", [](int size, double timeout_seconds) {
            return join_threads(size, [&](comm::Store& store, int rank) {
              return comm::make_shm_communicator(
                  comm::join_segment(store, "world", {rank, size}, comm::default_heap_bytes(size),
                                     timeout_seconds),
                  {.rank = rank, .timeout_seconds = timeout_seconds});
            });
          }};
}

GroupMaker tcp_groups() {
  return {"tcp", [](int size, double timeout_seconds) {
            return join_threads(size, [&](comm::Store& store, int rank) {
              return comm::make_tcp_communicator(
                  store, {.rank = rank, .size = size, .timeout_seconds = timeout_seconds});
            });
          }};
}

GroupMaker hierarchical_groups(std::vector<int> ranks_per_node) {
  return {fmt::format("hierarchical {}", fmt::join(ranks_per_node, "+")),
          [ranks_per_node](int size, double timeout_seconds) {
            return join_nodes(size, timeout_seconds, map_in_turn(size, ranks_per_node));
          }};
}

GroupMaker scattered_groups() {
  return {"scattered", [](int size, double timeout_seconds) {
            return join_nodes(size, timeout_seconds, map_round_robin(size));
          }};
}

void run_group(const Group& group, const std::function<void(comm::Communicator&)>& body) {
  run_ranks(
      group.size(),
      [&](int rank) {
        if (group.has(rank)) body(group[rank]);
      },
      [&] { group.abort(); });
}

std::vector<Failed> failures_of_ranks(const Group& group,
                                      const std::function<void(comm::Communicator&)>& body) {
  run_ranks(group.size(), [&](int rank) {
    if (!group.has(rank)) return;
    try {
      body(group[rank]);
      group.tell(rank, "");
    } catch (const Error& error) {
      group.tell(rank, std::string(1, static_cast<char>(error.code())) + error.what());
    }
  });
  std::vector<Failed> failures;
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string told = group.told(rank);
    failures.push_back(told.empty() ? Failed{}
                                    : Failed{static_cast<ErrorCode>(told.front()), told.substr(1)});
  }
  return failures;
}

}  // namespace dstrain::test
