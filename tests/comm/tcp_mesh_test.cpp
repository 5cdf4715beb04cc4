// What happens while ranks connect over TCP: strangers that come to their ports, and ranks that
// leave as soon as they are connected.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include "runtime/comm/tcp/tcp_transport.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"
#include "runtime/os/token_proof.h"
#include "tests/comm/memory_store.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::error_of;

namespace {

/// Ranks that have connected and left.
class Departures {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++number_;
    changed_.notify_all();
  }
  /// Waits for so many, or until it is plain that they do not leave yet.
  void wait_for(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return number_ >= number; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int number_ = 0;
};

/// What a rank hears when the others have left, if they can.
class SlowStore final : public comm::Store {
 public:
  SlowStore(comm::Store& store, Departures& others) : store_(store), others_(others) {}
  void set(const std::string& key, std::string_view value) override { store_.set(key, value); }
  std::string get(const std::string& key, double timeout_seconds) override {
    std::string value = store_.get(key, timeout_seconds);
    others_.wait_for(2);
    return value;
  }
  std::vector<std::string> gather(const std::string& key,
                                  Member member,
                                  std::string_view value,
                                  double timeout_seconds) override {
    auto values = store_.gather(key, member, value, timeout_seconds);
    others_.wait_for(2);
    return values;
  }
  std::int64_t add(const std::string& key, std::int64_t delta, double timeout_seconds) override {
    return store_.add(key, delta, timeout_seconds);
  }

 private:
  comm::Store& store_;
  Departures& others_;
};

/// A port that swallows attempts to connect, as a firewall does that drops them: nobody accepts
/// there, and the few places of those who wait are taken.
class DroppingPort {
 public:
  DroppingPort() {
    socket_ = std::move(listen_tcp({"127.0.0.1", 0}).value());
    ::listen(socket_.get(), 0);
    while (true) {
      Result<UniqueFd> waiting = connect_tcp(endpoint(), Deadline::after(0.2));
      if (!waiting.ok()) return;
      waiting_.push_back(std::move(waiting.value()));
    }
  }
  [[nodiscard]] Endpoint endpoint() const { return {"127.0.0.1", bound_port(socket_.get())}; }

 private:
  UniqueFd socket_;
  std::vector<UniqueFd> waiting_;
};

/// Tells ranks above 0 that rank 0 listens somewhere else.
class MisleadingStore final : public test::MemoryStore {
 public:
  explicit MisleadingStore(const Endpoint& instead)
      : instead_(fmt::format("{} {}", instead.host, instead.port)) {}
  std::vector<std::string> gather(const std::string& key,
                                  Member member,
                                  std::string_view value,
                                  double timeout_seconds) override {
    auto values = MemoryStore::gather(key, member, value, timeout_seconds);
    if (member.rank > 0) values.front() = instead_;
    return values;
  }

 private:
  std::string instead_;
};

/// What a stranger does at a rank's port. The socket stays open until the test ends.
using Stranger = void (*)(int socket);

constexpr double seconds = 60;

Greeting greeting_at(int socket) {
  Greeting greeting;
  receive_all(socket, bytes_of(greeting), Deadline::after(seconds));
  return greeting;
}

void say_hello(int socket, const std::string& token, std::uint32_t number) {
  const ClientHello hello = make_hello(greeting_at(socket), token, number);
  send_all(socket, bytes_of(hello), Deadline::after(seconds));
}

/// A store before which strangers connect to the port that a rank names, before any rank knows it.
class VisitedStore final : public test::MemoryStore {
 public:
  VisitedStore(Stranger stranger, int visits) : stranger_(stranger), visits_(visits) {}
  void set(const std::string& key, std::string_view value) override {
    visit(value);
    MemoryStore::set(key, value);
  }
  std::vector<std::string> gather(const std::string& key,
                                  Member member,
                                  std::string_view value,
                                  double timeout_seconds) override {
    visit(value);
    return MemoryStore::gather(key, member, value, timeout_seconds);
  }

  /// Where ranks have listened.
  std::vector<Endpoint> endpoints;

 private:
  /// On threads: a stranger may wait for the greeting of a rank that does not accept yet.
  void visit(std::string_view value) {
    Endpoint endpoint;
    if (!(std::istringstream(std::string(value)) >> endpoint.host >> endpoint.port)) return;
    const std::lock_guard lock(mutex_);
    endpoints.push_back(endpoint);
    for (int i = 0; i < visits_; ++i) {
      threads_.emplace_back([this, endpoint] {
        Result<UniqueFd> socket = connect_tcp(endpoint, Deadline::after(seconds));
        if (!socket.ok()) return;
        stranger_(socket.value().get());
        const std::lock_guard holding(sockets_mutex_);
        sockets_.push_back(std::move(socket.value()));
      });
    }
  }

  Stranger stranger_;
  int visits_;
  std::mutex mutex_;
  std::mutex sockets_mutex_;
  std::vector<UniqueFd> sockets_;
  std::vector<std::jthread> threads_;  // joined first
};

struct Visit {
  std::string name;
  int visits = 1;
  Stranger stranger = nullptr;
};

/// All ranks add up what each of them has: rank r has r + 1.
float add_up(comm::Store& store, int rank, int size) {
  const auto ranks = comm::make_tcp_communicator(
      store, {.rank = rank, .size = size, .timeout_seconds = seconds, .token = "token"});
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  std::vector<float> values(1000, static_cast<float>(rank + 1));
  ranks->all_reduce(HostView(values, Shape{1000}), stream);
  return values.back();
}

}  // namespace

TEST_CASE("TcpMesh: strangers cannot join or disturb the ranks", "[comm]") {
  const auto visit = GENERATE(values<Visit>({
      {"silent", 300,
       [](int /*socket*/) {
       }},
      {"random", 20,
       [](int socket) {
         send_all(socket, random_bytes<200>(), Deadline::after(seconds));
       }},
      {"another token", 5,
       [](int socket) {
         say_hello(socket, "guess/world/mesh 0", 3);
       }},
      {"no token", 5,
       [](int socket) {
         say_hello(socket, "/world/mesh 0", 3);
       }},
      {"another group", 5,
       [](int socket) {
         say_hello(socket, "token/other/mesh 0", 3);
       }},
      {"no such rank", 5,
       [](int socket) {
         say_hello(socket, "token/world/mesh 0", 3 * 7);
       }},
      {"a lower rank", 5,
       [](int socket) {
         say_hello(socket, "token/world/mesh 0", 0);
       }},
  }));
  CAPTURE(visit.name);
  VisitedStore store(visit.stranger, visit.visits);
  std::array<float, 3> sums{};
  REQUIRE_NOTHROW(test::run_ranks(
      3, [&](int rank) { sums[static_cast<std::size_t>(rank)] = add_up(store, rank, 3); }));
  CHECK(sums == std::array<float, 3>{6, 6, 6});
}

TEST_CASE("TcpMesh: connected ranks accept no more connections", "[comm]") {
  VisitedStore store([](int /*socket*/) {}, 0);
  std::array<std::unique_ptr<comm::Transport>, 3> ranks;
  test::run_ranks(3, [&](int rank) {
    auto& transport = ranks[static_cast<std::size_t>(rank)];
    transport = comm::make_tcp_transport(store, {.rank = rank, .size = 3});
    transport->connect(rank == 2 ? std::vector<int>{} : std::vector<int>{1 - rank});
    if (rank > 0) transport->connect_pair(3 - rank, [] {});
  });
  REQUIRE(store.endpoints.size() == 4);
  for (const Endpoint& endpoint : store.endpoints) {
    CHECK_FALSE(connect_tcp(endpoint, Deadline::after(seconds)).ok());
  }
}

TEST_CASE("TcpMesh: a rank of another job is refused by name", "[comm]") {
  test::MemoryStore store;
  std::array<std::string, 2> errors;
  test::run_ranks(2, [&](int rank) {
    errors[static_cast<std::size_t>(rank)] = error_of([&] {
      const comm::TcpOptions options{
          .rank = rank, .size = 2, .timeout_seconds = 5, .token = rank == 0 ? "one" : "two"};
      comm::connect_mesh(store, options, {{1 - rank}, 1});
    });
  });
  CHECK_THAT(errors[0], ContainsSubstring("waits at 127.0.0.1:") &&
                            ContainsSubstring(" for connections from rank 1 (127.0.0.1): ") &&
                            ContainsSubstring("--port_range"));
  CHECK_THAT(errors[1], ContainsSubstring("rank 1 cannot connect") &&
                            ContainsSubstring("is not a rank of this group"));
}

TEST_CASE("TcpMesh: a rank behind a firewall fails before the rank that waits for it", "[comm]") {
  DroppingPort port;
  MisleadingStore store(port.endpoint());
  std::array<std::string, 2> errors;
  std::array<std::atomic<int>, 2> place{};
  std::array<int, 2> unreachable{-1, -1};
  std::atomic<int> failed = 0;
  test::run_ranks(2, [&](int rank) {
    const auto own = static_cast<std::size_t>(rank);
    errors[own] = error_of([&] {
      const comm::TcpOptions options{
          .rank = rank, .size = 2, .timeout_seconds = 5, .tell_unreachable = [&](int to) {
            unreachable[own] = to;
          }};
      comm::connect_mesh(store, options, {{1 - rank}, 1});
    });
    place[own] = ++failed;
  });
  CHECK_THAT(errors[1],
             ContainsSubstring(fmt::format("rank 1 cannot connect from 127.0.0.1 to rank 0 at {}: ",
                                           to_string(port.endpoint()))) &&
                 ContainsSubstring("--port_range says which ports it must let pass"));
  CHECK_THAT(errors[0], ContainsSubstring("for connections from rank 1 (127.0.0.1)"));
  CHECK(place[1] < place[0]);
  CHECK(unreachable == std::array{-1, 0});
}

TEST_CASE("TcpMesh: ranks listen at ports of the range", "[comm]") {
  const UniqueFd free = std::move(listen_tcp({"127.0.0.1", 0}).value());
  const int first = std::min(bound_port(free.get()), 65'000);
  const PortRange range{first, first + 200};
  VisitedStore store([](int /*socket*/) {}, 0);
  test::run_ranks(3, [&](int rank) {
    std::vector<int> peers{0, 1, 2};
    std::erase(peers, rank);
    comm::connect_mesh(store, {.rank = rank, .size = 3, .ports = range}, {peers, 1});
  });
  REQUIRE(store.endpoints.size() == 3);
  for (const Endpoint& endpoint : store.endpoints) {
    CHECK(endpoint.port > range.first);
    CHECK(endpoint.port <= range.last);
  }
}

TEST_CASE("TcpMesh: a rank may leave before the others have read as much", "[comm]") {
  const int slow = GENERATE(0, 1, 2);
  CAPTURE(slow);
  test::MemoryStore store;
  Departures others;
  SlowStore late(store, others);
  REQUIRE_NOTHROW(test::run_ranks(3, [&](int rank) {
    comm::Store& own = rank == slow ? static_cast<comm::Store&>(late) : store;
    std::vector<int> peers{0, 1, 2};
    std::erase(peers, rank);
    comm::connect_mesh(own, {.rank = rank, .size = 3}, {peers, 1});
    others.add();
  }));
}
