#include <array>
#include <csignal>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/comm/store/protocol.h"
#include "runtime/comm/store/tcp_store.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"
#include "tests/comm/descriptor_limit.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace dstrain;
using comm::TcpStore;

/// What strangers do to the store's port must not disturb the job.
namespace {

std::unique_ptr<TcpStore> serve() {
  return TcpStore::serve({.endpoint = {"127.0.0.1", 0}, .token = "key", .timeout_seconds = 30});
}

UniqueFd connect_stranger(const TcpStore& store) {
  Result<UniqueFd> socket = connect_tcp(store.endpoint(), Deadline::after(30));
  return std::move(socket.value());
}

/// Whether the server closes this connection, reading what comes until then.
bool is_closed_by_server(int socket) {
  std::array<std::uint8_t, 1> byte{};
  while (true) {
    const Transfer outcome = receive_all(socket, byte, Deadline::after(30));
    if (outcome != Transfer::done) return outcome == Transfer::closed;
  }
}

/// A store whose token keeps out nobody who is let near it.
TcpStore::Options open_to_all(int port, const std::string& token) {
  return {.endpoint = {"127.0.0.1", port},
          .token = token,
          .loopback_only = true,
          .timeout_seconds = 60};
}

constexpr int refused_status = 3;

/// In a child: does so as another user, and ends.
template <class Body>
[[noreturn]] void as_nobody(Body body) {
  constexpr uid_t nobody = 65534;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::setuid(nobody) != 0) ::_exit(1);
  try {
    body();
  } catch (const Error&) {
    ::_exit(refused_status);
  }
  ::_exit(0);
}

void check_works(TcpStore& store) {
  const auto client =
      TcpStore::connect({.endpoint = store.endpoint(), .token = "key", .timeout_seconds = 30});
  const std::int64_t count = store.add("n", 1, 60);
  CHECK(client->get("n", 30) == std::to_string(count));
}

}  // namespace

TEST_CASE("TcpStore: junk is dropped", "[comm]") {
  const auto store = serve();
  for (int i = 0; i < 300; ++i) {
    const UniqueFd socket = connect_stranger(*store);
    const auto junk = random_bytes<200>();
    send_all(socket.get(), junk, Deadline::after(30));
    if (i % 50 == 0) CHECK(is_closed_by_server(socket.get()));
  }
  check_works(*store);
}

/// Their time for the handshake is far longer than the test: only the limit can end them.
TEST_CASE("TcpStore: silent connections beyond the limit make room", "[comm]") {
  Result<UniqueFd> listener = listen_tcp({"127.0.0.1", 0});
  const comm::TcpStoreServer server(std::move(listener.value()),
                                    {.token = "key", .proof_seconds = 3600});
  const Endpoint endpoint{"127.0.0.1", server.port()};
  const auto store =
      TcpStore::connect({.endpoint = endpoint, .token = "key", .timeout_seconds = 30});
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 400; ++i) {
    silent.push_back(connect_stranger(*store));
    if (i % 100 == 0) check_works(*store);
  }
  CHECK(is_closed_by_server(silent.front().get()));
  check_works(*store);
}

/// It greets like a server and says that the client's proof is right, but has none of its own.
TEST_CASE("TcpStore: a server that cannot prove the token is refused", "[comm]") {
  Result<UniqueFd> listener = listen_tcp({"127.0.0.1", 0});
  const Endpoint endpoint{"127.0.0.1", bound_port(listener.value().get())};
  const std::jthread impostor([&] {
    Deadline deadline = Deadline::after(60);
    if (!wait_until_ready(listener.value().get(), POLLIN, deadline)) return;
    const UniqueFd client(::accept4(listener.value().get(), nullptr, nullptr, SOCK_NONBLOCK));
    const Greeting greeting{.magic = comm::store_magic, .nonce = random_bytes<32>()};
    send_all(client.get(), bytes_of(greeting), deadline);
    ClientHello hello;
    receive_all(client.get(), bytes_of(hello), deadline);
    const ServerHello answer{.accepted = 1, .proof = random_bytes<32>()};
    send_all(client.get(), bytes_of(answer), deadline);
  });
  CHECK_THROWS_WITH(
      TcpStore::connect({.endpoint = endpoint, .token = "key", .timeout_seconds = 60}),
      Catch::Matchers::ContainsSubstring("has another token"));
}

TEST_CASE("TcpStore: a slow handshake is dropped", "[comm]") {
  Result<UniqueFd> listener = listen_tcp({"127.0.0.1", 0});
  const comm::TcpStoreServer server(std::move(listener.value()),
                                    {.token = "key", .proof_seconds = 0.05});
  Result<UniqueFd> socket = connect_tcp({"127.0.0.1", server.port()}, Deadline::after(30));
  const std::array<std::uint8_t, 3> start{1, 2, 3};
  send_all(socket.value().get(), start, Deadline::after(30));
  CHECK(is_closed_by_server(socket.value().get()));
}

TEST_CASE("TcpStore: a client that connects while no descriptor is free is served later",
          "[comm]") {
  const auto store = serve();
  store->add("n", 0, 60);
  const UniqueFd late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(store->endpoint().port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  {
    const test::DescriptorLimit limit(0);
    REQUIRE(::connect(late.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
            0);
    for (int i = 0; i < 3; ++i)
      store->add("n", 1, 60);  // the server has seen the connection by then
  }
  Greeting greeting;
  CHECK(receive_all(late.get(), bytes_of(greeting), Deadline::after(30)) == Transfer::done);
  CHECK(greeting.magic == comm::store_magic);
}

TEST_CASE("TcpStore: a replayed hello is refused", "[comm]") {
  const auto store = serve();
  const UniqueFd first = connect_stranger(*store);
  Greeting greeting;
  REQUIRE(receive_all(first.get(), bytes_of(greeting), Deadline::after(30)) == Transfer::done);
  const ClientHello hello = make_hello(greeting, "key", 0);
  for (const bool replayed : {false, true}) {
    const UniqueFd second = replayed ? connect_stranger(*store) : UniqueFd{};
    const int socket = replayed ? second.get() : first.get();
    if (replayed) {
      REQUIRE(receive_all(socket, bytes_of(greeting), Deadline::after(30)) == Transfer::done);
    }
    send_all(socket, bytes_of(hello), Deadline::after(30));
    ServerHello answer;
    REQUIRE(receive_all(socket, bytes_of(answer), Deadline::after(30)) == Transfer::done);
    CHECK(answer.accepted == (replayed ? 0 : 1));
  }
}

TEST_CASE("TcpStore: an oversized frame ends its connection", "[comm]") {
  const auto store = serve();
  const UniqueFd socket = connect_stranger(*store);
  Greeting greeting;
  receive_all(socket.get(), bytes_of(greeting), Deadline::after(30));
  const ClientHello hello = make_hello(greeting, "key", 0);
  send_all(socket.get(), bytes_of(hello), Deadline::after(30));
  const std::array<std::uint8_t, 4> length{0xff, 0xff, 0xff, 0x7f};
  send_all(socket.get(), length, Deadline::after(30));
  CHECK(is_closed_by_server(socket.get()));
  check_works(*store);
}

TEST_CASE("StoreProtocol: malformed requests are distinguished", "[comm]") {
  using Bytes = std::vector<std::uint8_t>;
  CHECK_FALSE(comm::decode_request(Bytes{}));
  CHECK_FALSE(comm::decode_request(Bytes{'g', 0, 0, 0}));
  CHECK_FALSE(comm::decode_request(Bytes{'x', 0, 0, 0, 0}));
  CHECK_FALSE(comm::decode_request(Bytes{'g', 2, 0, 0, 0, 'a'}));
  CHECK_FALSE(comm::decode_request(Bytes{'g', 0xff, 0xff, 0xff, 0xff, 'a'}));
  const auto request = comm::decode_request(Bytes{'s', 1, 0, 0, 0, 'a', 'b'});
  REQUIRE(request);
  CHECK(request->key == "a");
  CHECK(request->value == "b");
}

/// Both on loopback, where every user of the machine is.
TEST_CASE("TcpStore: without a secret another user does not join", "[comm]") {
  if (::geteuid() != 0) test::skip("only root can be another user");
  const std::string token = GENERATE("", "no secret");
  const auto store = TcpStore::serve(open_to_all(0, token));
  const TcpStore::Options there = open_to_all(store->endpoint().port, token);
  const pid_t stranger = ::fork();
  if (stranger == 0) as_nobody([&] { TcpStore::connect(there)->set("key", "a stranger's"); });
  int status = 0;
  ::waitpid(stranger, &status, 0);
  CHECK(WEXITSTATUS(status) == refused_status);
  CHECK_THROWS_WITH(store->get("key", 1), Catch::Matchers::ContainsSubstring("no rank set"));
  TcpStore::connect(there)->set("key", "own");
  CHECK(store->get("key", 60) == "own");
}

TEST_CASE("TcpStore: without a secret a client does not join another user's server", "[comm]") {
  if (::geteuid() != 0) test::skip("only root can be another user");
  const std::string token = GENERATE("", "no secret");
  Result<UniqueFd> listener = listen_tcp({"127.0.0.1", 0});
  const int port = bound_port(listener.value().get());
  listener.value().reset();
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    as_nobody([&] {
      const auto store = TcpStore::serve(open_to_all(port, token));
      ::pause();
    });
  }
  CHECK_THROWS_WITH(TcpStore::connect(open_to_all(port, token)),
                    Catch::Matchers::ContainsSubstring("belongs to another user"));
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
}
