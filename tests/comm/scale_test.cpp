// Many ranks, as threads of this process: what meeting and agreeing costs. Prints its figures.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>

#include "runtime/comm/control/shared_control_group.h"
#include "runtime/comm/control/tree_control_group.h"
#include "runtime/comm/hierarchical/hierarchical_communicator.h"
#include "runtime/comm/rendezvous.h"
#include "runtime/comm/self/self_communicator.h"
#include "runtime/comm/store/tcp_store.h"
#include "runtime/comm/tcp/tcp_transport.h"
#include "runtime/device/cpu_stream.h"
#include "tests/comm/conformance.h"
#include "tests/support/catch.h"
#include "tests/support/process_end.h"
#include "tests/support/ranks.h"

using namespace dstrain;

namespace {

using SteadyTime = std::chrono::steady_clock;

double seconds_since(SteadyTime::time_point begin) {
  return std::chrono::duration<double>(SteadyTime::now() - begin).count();
}

constexpr const char* token = "a token of this test";

/// A thousand threads take the thread sanitizer 24 GB.
#ifdef __SANITIZE_THREAD__
constexpr int ranks_max = 256;
#else
constexpr int ranks_max = 1024;
#endif

/// Of numbers of ranks.
bool bearable(int ranks) {
  return ranks <= ranks_max;
}

comm::TcpStore::Options options_at(Endpoint endpoint) {
  comm::TcpStore::Options options;
  options.endpoint = std::move(endpoint);
  options.token = token;
  return options;
}

/// One of `size` ranks, each of which is a node of its own.
struct Node {
  std::unique_ptr<comm::TcpStore> store;
  std::unique_ptr<comm::ControlGroup> control;

  Node(int rank, int size, std::unique_ptr<comm::TcpStore> met_at) : store(std::move(met_at)) {
    comm::wait_for_all(*store, {.rank = rank, .world_size = size});
    store->gather("claims", {rank, size}, std::string(40, 'x'), test::hang_seconds);
    control = std::make_unique<comm::TreeControlGroup>(
        *store,
        comm::TreeControlGroup::Options{.tcp = {.rank = rank, .size = size, .token = token}});
    control->barrier();
  }

  std::unique_ptr<comm::Communicator> connect() {
    const int rank = control->rank();
    const int size = control->size();
    comm::NodeMap map;
    for (int node = 0; node < size; ++node) map.nodes.push_back({node});
    comm::TcpOptions tcp{.rank = rank, .size = size, .name = "collectives", .token = token};
    auto transport = comm::make_tcp_transport(*store, tcp);
    tcp.name += "/control";
    auto own_control =
        std::make_unique<comm::TreeControlGroup>(*store, comm::TreeControlGroup::Options{tcp});
    return comm::make_hierarchical({std::move(transport), std::move(own_control)},
                                   comm::make_self_communicator(), std::move(map),
                                   test::hang_seconds);
  }
};

/// Medians in microseconds of so many barriers, of rank 0.
double barrier_seconds(comm::ControlGroup& control) {
  constexpr int rounds = 300;
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = SteadyTime::now();
    control.barrier();
    seconds.push_back(seconds_since(begin));
  }
  std::ranges::nth_element(seconds, seconds.begin() + rounds / 2);
  return seconds[rounds / 2];
}

}  // namespace

TEST_CASE("Scale: many ranks meet and agree", "[comm][scale]") {
  const int size = GENERATE(filter(bearable, values({64, 256, 1024})));
  auto served = comm::TcpStore::serve(options_at({"127.0.0.1", 0}));
  const Endpoint endpoint = served->endpoint();
  std::vector<std::unique_ptr<Node>> nodes(static_cast<std::size_t>(size));
  const auto begin = SteadyTime::now();
  double met = 0;
  double check = 0;
  test::run_ranks(size, [&](int rank) {
    auto& node = nodes[static_cast<std::size_t>(rank)];
    auto store = rank == 0 ? std::move(served) : comm::TcpStore::connect(options_at(endpoint));
    node = std::make_unique<Node>(rank, size, std::move(store));
    if (rank == 0) met = seconds_since(begin);
    const double seconds = barrier_seconds(*node->control);
    if (rank == 0) check = seconds;
  });
  std::printf("%d ranks: met in %.3f s; a check over sockets %.0f us\n", size, met, check * 1e6);
  while (!nodes.empty()) nodes.pop_back();
}

TEST_CASE("Scale: many nodes connect and add up", "[comm][scale]") {
  const int size = GENERATE(filter(bearable, values({16, 17, 256, 1024})));
  auto served = comm::TcpStore::serve(options_at({"127.0.0.1", 0}));
  const Endpoint endpoint = served->endpoint();
  std::vector<std::unique_ptr<Node>> nodes(static_cast<std::size_t>(size));
  std::vector<std::unique_ptr<comm::Communicator>> ranks(nodes.size());
  std::atomic<int> right = 0;
  double connected = 0;
  double added = 0;
  test::run_ranks(size, [&](int rank) {
    auto& node = nodes[static_cast<std::size_t>(rank)];
    auto store = rank == 0 ? std::move(served) : comm::TcpStore::connect(options_at(endpoint));
    node = std::make_unique<Node>(rank, size, std::move(store));
    const auto begin = SteadyTime::now();
    auto& communicator = ranks[static_cast<std::size_t>(rank)];
    communicator = node->connect();
    node->control->barrier();
    if (rank == 0) connected = seconds_since(begin);
    const auto connected_at = SteadyTime::now();
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    std::vector<float> values(100'000, static_cast<float>(rank));
    communicator->all_reduce(HostView(values, Shape{std::ssize(values)}), stream);
    if (std::ranges::count(values, static_cast<float>(size * (size - 1) / 2)) == 100'000) ++right;
    node->control->barrier();
    if (rank == 0) added = seconds_since(connected_at);
  });
  CHECK(right == size);
  std::printf("%d nodes: connected in %.3f s; 100,000 floats added up in %.3f s\n", size, connected,
              added);
  ranks.clear();
  while (!nodes.empty()) nodes.pop_back();
}

TEST_CASE("Scale: many ranks of one node agree", "[comm][scale]") {
  const int size = GENERATE(2, 8, 64);
  const auto group = comm::make_thread_control_groups(size);
  double check = 0;
  test::run_ranks(size, [&](int rank) {
    const double seconds = barrier_seconds(*group[static_cast<std::size_t>(rank)]);
    if (rank == 0) check = seconds;
  });
  std::printf("%d ranks: a check in shared memory %.1f us\n", size, check * 1e6);
}
