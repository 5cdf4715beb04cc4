#include "runtime/comm/make_communicator.h"

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/base/log.h"
#include "runtime/comm/alike_ranks.h"
#include "runtime/comm/control/hierarchical_control_group.h"
#include "runtime/comm/control/shared_control_group.h"
#include "runtime/comm/hierarchical/hierarchical_communicator.h"
#include "runtime/comm/mpi/mpi_rendezvous.h"
#include "runtime/comm/mpi/mpi_starter.h"
#include "runtime/comm/mpi/mpi_transport.h"
#include "runtime/comm/self/self_communicator.h"
#include "runtime/comm/shm/segment_exchange.h"
#include "runtime/comm/shm/shm_communicator.h"
#include "runtime/comm/store/tcp_store.h"
#include "runtime/comm/tcp/tcp_transport.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"
#include "runtime/rank/compute_environment.h"
#include "runtime/rank/inherited_listener.h"
#include "runtime/rank/job_token_file.h"

namespace dstrain::comm {
namespace {

/// The time within which a machine of the job's network answers.
constexpr double answer_seconds_max = 0.3;

/// Returns the file that holds the token, if there is one; keep it until all ranks have the token.
std::optional<JobTokenFile> share_token(WorkerEnv& worker) {
  if (worker.token_file.empty()) return std::nullopt;
  JobTokenFile file = worker.rank == 0
                          ? JobTokenFile::create(worker.token_file)
                          : JobTokenFile::wait_for(worker.token_file, worker.timeout_seconds);
  worker.token = file.token();
  return file;
}

bool under_mpi(const WorkerEnv& worker) {
  return worker.mpi != MpiKind::none;
}

/// Where the ranks meet, as far as known before MPI is asked.
GivenRendezvous given_to(const WorkerEnv& worker) {
  GivenRendezvous given;
  if (!worker.master_addr.empty()) given.address = worker.master_addr;
  if (worker.master_port != 0) given.port = worker.master_port;
  if (!worker.token.empty()) given.token = worker.token;
  return given;
}

/// Completes `worker` through MPI. Returns rank 0's listener, and none on other ranks.
UniqueFd rendezvous_over_mpi(MpiLibrary& mpi, WorkerEnv& worker) {
  if (mpi.api().rank != worker.rank) {
    fail(ErrorCode::config,
         "{}={}, and MPI calls this process rank {}: set {}, {} and {} too, or none of them",
         env::rank, worker.rank, mpi.api().rank, env::master_addr, env::master_port, env::token);
  }
  RendezvousAddress shared = share_rendezvous(mpi, given_to(worker));
  worker.master_addr = shared.endpoint.host;
  worker.master_port = shared.endpoint.port;
  worker.token = shared.token;
  worker.loopback_only = false;
  return std::move(shared.listener);
}

/// Whether the host does not answer at all, not even to refuse the connection.
bool is_unreachable(const Endpoint& endpoint) {
  const Result<UniqueFd> socket = connect_tcp(endpoint, Deadline::after(answer_seconds_max));
  return !socket.ok() && !socket.failure().passing;
}

/// Connects to the store of rank 0, waiting for it.
std::unique_ptr<TcpStore> reach_store(TcpStore::Options options,
                                      const RankNodes& nodes,
                                      const JoinNews& news) {
  const Endpoint endpoint = options.endpoint;
  try {
    return TcpStore::connect(std::move(options));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    if (news.awaited) news.awaited(locate_ranks(std::array{0}, nodes));
    if (news.unreachable && is_unreachable(endpoint)) news.unreachable(0);
    throw;
  }
}

/// Waits for a network route to rank 0.
void find_route(const WorkerEnv& worker, const JoinNews& news) {
  if (worker.loopback_only) return;  // the store is at loopback, whatever the address
  try {
    wait_for_route({worker.master_addr, worker.master_port}, worker.master_variable,
                   worker.timeout_seconds);
  } catch (const Error&) {
    if (worker.rank != 0 && news.unreachable) news.unreachable(0);
    throw;
  }
}

/// `listener`: rank 0's, if it listens already.
std::unique_ptr<TcpStore> rendezvous(const WorkerEnv& worker,
                                     UniqueFd listener,
                                     const JoinNews& news) {
  find_route(worker, news);
  TcpStore::Options options{.endpoint = {worker.master_addr, worker.master_port},
                            .ports = worker.master_ports,
                            .token = worker.token,
                            .loopback_only = worker.loopback_only,
                            .timeout_seconds = worker.timeout_seconds};
  std::unique_ptr<TcpStore> store = worker.rank == 0
                                        ? TcpStore::serve(std::move(options), std::move(listener))
                                        : reach_store(std::move(options), worker.nodes, news);
  wait_for_all(*store, {.rank = worker.rank,
                        .world_size = worker.world_size,
                        .world_claim = worker.world_claim,
                        .timeout_seconds = worker.timeout_seconds,
                        .place = to_string(store->endpoint()),
                        .nodes = worker.nodes,
                        .tell = news.awaited});
  return store;
}

/// Returns the listener that rank 0 has from the agent; none if strangers could reach it and there
/// is no secret.
UniqueFd inherited_store_listener(const WorkerEnv& worker) {
  if (worker.rank != 0) return {};
  UniqueFd listener = inherited_listener(worker.master_port);
  if (worker.loopback_only && !is_loopback(worker.master_addr)) listener.reset();
  return listener;
}

/// Makes ranks that the kernel has let meet agree on a secret for all that follows.
void agree_on_token(Store& store, WorkerEnv& worker) {
  if (!worker.loopback_only) return;
  if (worker.rank == 0) store.set("token", to_hex(random_bytes<16>()));
  worker.token = store.get("token", worker.timeout_seconds);
}

/// The state of a rank that joins a World.
struct Joining {
  std::unique_ptr<TcpStore> store;
  std::shared_ptr<MpiLibrary> mpi;  ///< once MPI is entered
  TellUnreachable unreachable;
};

/// Changes with the protocol between ranks.
constexpr const char* language = "dstrain 1";

/// The ranks must choose the same kind, or they wait for each other in different places.
void check_alike(Store& store, const WorkerEnv& worker) {
  const std::string own =
      fmt::format("{} {} {}", language, static_cast<int>(worker.comm), under_mpi(worker));
  const std::vector<std::string> all =
      store.gather("comm", {worker.rank, worker.world_size}, own, worker.timeout_seconds);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == own) continue;
    fail(ErrorCode::config,
         "ranks {} and {} differ in {}, or in their version of dstrain, or mpirun has started only "
         "one of them: start all ranks alike",
         worker.rank, rank, env::comm);
  }
}

/// Returns the options of a TCP group of all ranks.
TcpOptions tcp_options(const Joining& joining, const WorkerEnv& worker) {
  const Result<std::string> address = local_address_towards(joining.store->endpoint());
  if (!address.ok()) fail(ErrorCode::comm, "{} (MASTER_ADDR)", address.error());
  return {.rank = worker.rank,
          .size = worker.world_size,
          .timeout_seconds = worker.timeout_seconds,
          .address = address.value(),
          .token = worker.token,
          .ports = read_port_range(),
          .tell_unreachable = joining.unreachable};
}

/// Enters MPI unless already done.
std::unique_ptr<Transport> make_mpi(Joining& joining, const WorkerEnv& worker) {
  if (!joining.mpi) joining.mpi = enter_mpi(worker);
  return make_mpi_transport(
      joining.mpi, *joining.store,
      {.rank = worker.rank, .size = worker.world_size, .timeout_seconds = worker.timeout_seconds});
}

std::unique_ptr<Transport> make_between(Joining& joining, const WorkerEnv& worker) {
  return under_mpi(worker) ? make_mpi(joining, worker)
                           : make_tcp_transport(*joining.store, tcp_options(joining, worker));
}

/// The node of this rank.
struct OwnNode {
  int number = 0;
  std::vector<int> ranks;
  int local_rank = 0;                      ///< this rank's index in `ranks`
  std::shared_ptr<const Segment> segment;  ///< shared by `ranks`
};

OwnNode meet_node(Store& store, const WorkerEnv& worker, const NodeMap& map) {
  OwnNode own;
  own.number = map.node_of(worker.rank);
  own.ranks = map.nodes[static_cast<std::size_t>(own.number)];
  own.local_rank = static_cast<int>(std::ranges::find(own.ranks, worker.rank) - own.ranks.begin());
  const int size = static_cast<int>(own.ranks.size());
  own.segment = join_segment(store, fmt::format("node {}", own.number), {own.local_rank, size},
                             default_heap_bytes(size), worker.timeout_seconds);
  return own;
}

GroupBarrier::Options barrier_of(const OwnNode& own, const WorkerEnv& worker) {
  return {.rank = own.local_rank, .timeout_seconds = worker.timeout_seconds, .names = own.ranks};
}

/// Makes a group of that name over all ranks. The ranks of a node share `segment`.
std::unique_ptr<ControlGroup> make_control_group(const std::string& name,
                                                 std::shared_ptr<const Segment> segment,
                                                 const Joining& joining,
                                                 const WorkerEnv& worker,
                                                 const NodeMap& map) {
  if (map.nodes.size() == 1) {
    return std::make_unique<SharedControlGroup>(
        std::move(segment),
        GroupBarrier::Options{.rank = worker.rank, .timeout_seconds = worker.timeout_seconds});
  }
  TcpOptions tcp = tcp_options(joining, worker);
  tcp.name = name;
  return std::make_unique<HierarchicalControlGroup>(*joining.store, tcp, map, std::move(segment));
}

/// Makes the private control group of a message communicator.
std::unique_ptr<ControlGroup> make_own_control_group(const Joining& joining,
                                                     const WorkerEnv& worker,
                                                     const NodeMap& map,
                                                     const OwnNode& own) {
  auto segment =
      join_segment(*joining.store, fmt::format("control of node {}", own.number),
                   {own.local_rank, static_cast<int>(own.ranks.size())}, 0, worker.timeout_seconds);
  return make_control_group("collectives", std::move(segment), joining, worker, map);
}

std::unique_ptr<Communicator> make_over_nodes(Joining& joining,
                                              const WorkerEnv& worker,
                                              NodeMap map,
                                              const OwnNode& own) {
  if (!map.contiguous() && worker.rank == 0) {
    log_warning(
        "the ranks of a node are not consecutive: every rank talks to every other through the "
        "network, which moves more bytes than sharing memory within the nodes");
  }
  auto within = make_shm_communicator(own.segment, barrier_of(own, worker));
  auto between = make_between(joining, worker);
  auto control = make_own_control_group(joining, worker, map, own);
  return make_hierarchical({std::move(between), std::move(control)}, std::move(within),
                           std::move(map), worker.timeout_seconds);
}

std::unique_ptr<Communicator> make_communicator(Joining& joining,
                                                const WorkerEnv& worker,
                                                NodeMap map,
                                                const OwnNode& own) {
  const auto nodes = map.nodes.size();
  const auto make_flat = [&](std::unique_ptr<Transport> transport) {
    auto control = make_own_control_group(joining, worker, map, own);
    return std::make_unique<MessageCommunicator>(
        MessageCommunicator::Lines{std::move(transport), std::move(control)},
        worker.timeout_seconds);
  };
  switch (worker.comm) {
    case CommKind::tcp:
      return make_flat(make_tcp_transport(*joining.store, tcp_options(joining, worker)));
    case CommKind::mpi:
      return make_flat(make_mpi(joining, worker));
    case CommKind::shm:
      if (nodes == 1) break;
      fail(ErrorCode::config, "{}=shm: the ranks are on {} nodes and share no memory", env::comm,
           nodes);
    case CommKind::hierarchical:
      if (nodes > 1) break;
      fail(ErrorCode::config, "{}=hierarchical: all ranks are on one node: use shm", env::comm);
    case CommKind::automatic:
      break;
  }
  return nodes == 1 ? make_shm_communicator(own.segment, barrier_of(own, worker))
                    : make_over_nodes(joining, worker, std::move(map), own);
}

/// Calls `action`; if it refuses the ranks, waits until all of them know.
template <class Action>
auto refusing_together(Store* store, const WorkerEnv& worker, const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    if (store != nullptr && error.code() == ErrorCode::config)
      refuse_together(*store, {worker.rank, worker.world_size});
    throw;
  }
}

}  // namespace

JoinNews news_for(const RankControl& control) {
  return {.awaited = [&control](const std::string& ranks) { control.tell_awaited(ranks); },
          .unreachable =
              [&control](int rank) {
                control.tell_unreachable(rank);
              }};
}

std::shared_ptr<MpiLibrary> enter_mpi(const WorkerEnv& worker) {
  return std::make_shared<MpiLibrary>(MpiStart{
      .kind = worker.mpi, .size = worker.world_size, .timeout_seconds = worker.timeout_seconds});
}

World join_world(WorkerEnv worker, const JoinNews& news) {
  UniqueFd listener = inherited_store_listener(worker);
  if (worker.world_size == 1) {
    return {std::move(worker), nullptr, make_self_control_group(), nullptr,
            make_self_communicator()};
  }
  Joining joining{.store = nullptr, .mpi = nullptr, .unreachable = news.unreachable};
  if (under_mpi(worker) && !given_to(worker).complete()) {
    joining.mpi = enter_mpi(worker);
    listener = rendezvous_over_mpi(*joining.mpi, worker);
  }
  {
    const std::optional<JobTokenFile> token = share_token(worker);
    joining.store = rendezvous(worker, std::move(listener), news);
    agree_on_token(*joining.store, worker);
  }
  return refusing_together(joining.store.get(), worker, [&]() -> World {
    check_alike(*joining.store, worker);
    const NodeMap map = exchange_nodes(*joining.store, worker);
    const OwnNode own = meet_node(*joining.store, worker, map);
    auto control = make_control_group("control", own.segment, joining, worker, map);
    // A rank may have inherited variables that the others lack, from a login or a container.
    require_alike_ranks(compute_environment(), *control);
    auto communicator = make_communicator(joining, worker, map, own);
    return {worker, std::move(joining.store), std::move(control), std::move(joining.mpi),
            std::move(communicator)};
  });
}

void require_alike(const World& world, std::span<const std::string> own) {
  refusing_together(world.store.get(), world.worker,
                    [&] { require_alike_ranks(own, *world.control); });
}

}  // namespace dstrain::comm
