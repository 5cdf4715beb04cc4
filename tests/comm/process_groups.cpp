#include "tests/comm/process_groups.h"

#include <algorithm>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/comm/control/hierarchical_control_group.h"
#include "runtime/comm/hierarchical/hierarchical_communicator.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/comm/mpi/mpi_transport.h"
#include "runtime/comm/self/self_communicator.h"
#include "runtime/comm/shm/segment_exchange.h"
#include "runtime/comm/shm/shm_communicator.h"
#include "runtime/comm/store/tcp_store.h"
#include "runtime/comm/tcp/tcp_transport.h"
#include "runtime/os/socket.h"
#include "tests/support/catch.h"

namespace dstrain::test {
namespace {

/// This process, its store and MPI, from the first test to the last.
class Process {
 public:
  Process() : worker(read_worker_env()) {
    comm::TcpStore::Options options{.endpoint = {worker.master_addr, worker.master_port},
                                    .token = worker.token,
                                    .timeout_seconds = worker.timeout_seconds};
    store = worker.rank == 0 ? comm::TcpStore::serve(std::move(options))
                             : comm::TcpStore::connect(std::move(options));
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process(Process&&) = delete;
  Process& operator=(Process&&) = delete;
  /// The store is with rank 0, which goes last.
  ~Process() {
    try {
      store->set("done/" + std::to_string(worker.rank), "");
      for (int rank = 0; rank < worker.world_size && worker.rank == 0; ++rank) {
        store->get("done/" + std::to_string(rank), worker.timeout_seconds);
      }
    } catch (const Error&) {  // another process failed, which its status tells
    }
  }

  const comm::NodeMap& map() {
    if (map_.nodes.empty()) map_ = comm::exchange_nodes(*store, worker);
    return map_;
  }
  std::shared_ptr<comm::MpiLibrary> mpi() {
    if (!mpi_) mpi_ = comm::enter_mpi(worker);
    return mpi_;
  }

  WorkerEnv worker;
  std::shared_ptr<comm::TcpStore> store;
  int groups = 0;

 private:
  std::shared_ptr<comm::MpiLibrary> mpi_;
  comm::NodeMap map_;
};

std::unique_ptr<Process>& kept_process() {
  static std::unique_ptr<Process> kept;
  return kept;
}

Process& process() {
  if (!kept_process()) kept_process() = std::make_unique<Process>();
  return *kept_process();
}

using Listener = Catch::EventListenerBase;

/// Leaves MPI before the program's end, when other static objects are gone: MPICH 4.2 would not
/// tell mpirun that it has left, which then may kill the others.
class LeaveAtEnd : public Listener {
 public:
  using Listener::Listener;
  void testRunEnded(const Catch::TestRunStats& /*stats*/) override { kept_process().reset(); }
};
CATCH_REGISTER_LISTENER(LeaveAtEnd)

/// The nodes of the first `size` ranks.
comm::NodeMap first_nodes(comm::NodeMap map, int size) {
  for (std::vector<int>& ranks : map.nodes) {
    std::erase_if(ranks, [&](int rank) { return rank >= size; });
  }
  std::erase_if(map.nodes, [](const std::vector<int>& ranks) { return ranks.empty(); });
  return map;
}

struct Wanted {
  int size = 1;
  double timeout_seconds = 60;
  std::string name;
};

comm::TcpOptions tcp_options(const Wanted& wanted) {
  Process& own = process();
  return {.rank = own.worker.rank,
          .size = wanted.size,
          .timeout_seconds = wanted.timeout_seconds,
          .name = wanted.name,
          .address = local_address_towards(own.store->endpoint()).value(),
          .token = own.worker.token};
}

std::unique_ptr<comm::Transport> make_transport(Over over, const Wanted& wanted) {
  Process& own = process();
  if (over == Over::tcp || over == Over::shm_and_tcp) {
    return comm::make_tcp_transport(*own.store, tcp_options(wanted));
  }
  return comm::make_mpi_transport(
      own.mpi(), *own.store,
      {.rank = own.worker.rank,
       .size = wanted.size,
       .timeout_seconds = wanted.timeout_seconds,
       .name = wanted.name,
       .piece_bytes = over == Over::mpi_in_small_pieces ? 1000 : gibibyte});
}

std::unique_ptr<comm::Communicator> join(Over over, const Wanted& wanted) {
  Process& own = process();
  comm::TcpOptions tcp = tcp_options(wanted);
  tcp.name += "/control";
  if (over != Over::shm_and_tcp && over != Over::shm_and_mpi) {
    comm::MessageCommunicator::Lines lines{
        make_transport(over, wanted), std::make_unique<comm::TreeControlGroup>(
                                          *own.store, comm::TreeControlGroup::Options{.tcp = tcp})};
    return std::make_unique<comm::MessageCommunicator>(std::move(lines), wanted.timeout_seconds);
  }
  comm::NodeMap map = first_nodes(own.map(), wanted.size);
  const int number = map.node_of(own.worker.rank);
  const std::vector<int>& node = map.nodes[static_cast<std::size_t>(number)];
  const int local_rank = static_cast<int>(std::ranges::find(node, own.worker.rank) - node.begin());
  const int size = static_cast<int>(node.size());
  const auto segment = comm::join_segment(
      *own.store, fmt::format("{} node {}", wanted.name, number), {local_rank, size},
      comm::default_heap_bytes(size), wanted.timeout_seconds);
  auto within = comm::make_shm_communicator(
      segment, {.rank = local_rank, .timeout_seconds = wanted.timeout_seconds, .names = node});
  comm::MessageCommunicator::Lines lines{
      make_transport(over, wanted),
      std::make_unique<comm::HierarchicalControlGroup>(*own.store, tcp, map, segment)};
  return comm::make_hierarchical(std::move(lines), std::move(within), std::move(map),
                                 wanted.timeout_seconds);
}

}  // namespace

int process_count() {
  return process().worker.world_size;
}

GroupMaker process_groups(Over over) {
  return {fmt::format("processes {}", static_cast<int>(over)),
          [over](int size, double timeout_seconds) {
            Process& own = process();
            // What all processes do together, also those outside of the group.
            if (over == Over::shm_and_tcp || over == Over::shm_and_mpi) own.map();
            if (over != Over::tcp && over != Over::shm_and_tcp) own.mpi();
            const Wanted wanted{size, timeout_seconds, fmt::format("group {}", ++own.groups)};
            Group::Members members(static_cast<std::size_t>(size));
            if (own.worker.rank < size) {
              members[static_cast<std::size_t>(own.worker.rank)] = join(over, wanted);
            }
            return Group(std::move(members), own.store, wanted.name);
          }};
}

}  // namespace dstrain::test
