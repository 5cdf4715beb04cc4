#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include <sys/wait.h>

#include "runtime/base/error.h"
#include "runtime/comm/store/tcp_store.h"
#include "tests/comm/memory_store.h"
#include "tests/support/catch.h"
#include "tests/support/process_end.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using comm::TcpStore;

namespace {

TcpStore::Options options_at(Endpoint endpoint, const std::string& token = "key") {
  return {.endpoint = std::move(endpoint), .token = token, .timeout_seconds = 30};
}

/// What every store keeps to; `other` is a second handle, or the same store again.
void check_store(comm::Store& store, comm::Store& other) {
  store.set("a", "1");
  CHECK(other.get("a", 30) == "1");
  store.set("a", std::string("two\0three", 9));
  CHECK(other.get("a", 30) == std::string("two\0three", 9));
  store.set("empty", "");
  CHECK(other.get("empty", 30).empty());
  CHECK(store.add("n", 3, 60) == 3);
  CHECK(other.add("n", -5, 60) == -2);
  CHECK(other.get("n", 30) == "-2");
  const std::string big(900'000, 'x');
  store.set("big", big);
  CHECK(other.get("big", 30) == big);
  CHECK_THROWS_WITH(store.get("never", 0.05), "no rank set \"never\" within 0.05 s");
  CHECK(other.get("a", 30).size() == 9);

  std::string got;
  std::thread waiting([&] { got = other.get("later", 30); });
  store.set("later", "here");  // the waiting get blocks neither handle
  waiting.join();
  CHECK(got == "here");

  // Many, so that some of the gets come first and wait.
  for (int i = 0; i < 50; ++i) {
    const std::string counter = "counter " + std::to_string(i);
    std::thread counting([&] { got = other.get(counter, 300); });
    CHECK(store.add(counter, i, 60) == i);
    counting.join();
    CHECK(got == std::to_string(i));
  }
}

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

}  // namespace

TEST_CASE("MemoryStore: conformance", "[comm]") {
  test::MemoryStore store;
  check_store(store, store);
}

TEST_CASE("TcpStore: conformance", "[comm]") {
  const std::string host = GENERATE("127.0.0.1", "localhost");
  const std::string token = GENERATE("", "key");
  CAPTURE(host, token);
  const auto server = TcpStore::serve(options_at({host, 0}, token));
  const auto client = TcpStore::connect(options_at(server->endpoint(), token));
  check_store(*server, *client);
}

TEST_CASE("TcpStore: without a token it listens on loopback only", "[comm]") {
  const auto server = TcpStore::serve(options_at({"203.0.113.7", 0}, ""));
  CHECK(server->endpoint().host == "127.0.0.1");
  const auto client = TcpStore::connect(options_at({"203.0.113.7", server->endpoint().port}, ""));
  client->set("a", "b");
  CHECK(server->get("a", 30) == "b");
}

TEST_CASE("TcpStore: a wrong token is refused at once", "[comm]") {
  const auto server = TcpStore::serve(options_at({"127.0.0.1", 0}, "right"));
  const std::string token = GENERATE("wrong", "");
  CAPTURE(token);
  const auto connect = [&] {
    TcpStore::connect(options_at(server->endpoint(), token));
  };
  CHECK(code_of(connect) == ErrorCode::comm);
  CHECK_THROWS_WITH(connect(), ContainsSubstring("has another token"));
  server->set("a", "b");
  CHECK(server->get("a", 30) == "b");
}

TEST_CASE("TcpStore: a port in use is named with the remedy", "[comm]") {
  const auto server = TcpStore::serve(options_at({"127.0.0.1", 0}));
  const int port = server->endpoint().port;
  const auto again = [&] {
    TcpStore::serve(options_at({"127.0.0.1", port}));
  };
  CHECK(code_of(again) == ErrorCode::comm);
  CHECK_THROWS_WITH(again(),
                    ContainsSubstring("port " + std::to_string(port) + " of 127.0.0.1 is in use") &&
                        ContainsSubstring("choose another port"));
}

TEST_CASE("TcpStore: an address of another machine is reported as such", "[comm]") {
  const auto serve = [] {
    TcpStore::serve(options_at({"192.0.2.77", 0}, "token"));
  };
  CHECK(code_of(serve) == ErrorCode::remote);
  CHECK_THROWS_WITH(serve(),
                    "rendezvous: cannot listen at 192.0.2.77:0: it is no address of this machine; "
                    "MASTER_ADDR (dstrain --master_addr) names the machine of rank 0, MASTER_PORT "
                    "a port of it");
}

TEST_CASE("TcpStore: a job finds its own server among those of others", "[comm]") {
  // Another job of the same kind is at the first port.
  const auto others = TcpStore::serve(options_at({"127.0.0.1", 0}, "other"));
  const int first = others->endpoint().port;
  TcpStore::Options options = options_at({"127.0.0.1", first});
  options.ports = 16;
  const auto server = TcpStore::serve(options);
  CHECK(server->endpoint().port > first);
  const auto client = TcpStore::connect(options);
  CHECK(client->endpoint().port == server->endpoint().port);
  client->set("a", "b");
  CHECK(server->get("a", 30) == "b");
  options.token = "nobody's";
  options.timeout_seconds = 0.2;
  CHECK_THROWS_WITH(TcpStore::connect(options), ContainsSubstring("rendezvous timed out"));
}

TEST_CASE("TcpStore: with a public token it listens on loopback only", "[comm]") {
  TcpStore::Options options = options_at({"203.0.113.7", 0}, "job 17");
  options.loopback_only = true;
  const auto server = TcpStore::serve(options);
  CHECK(server->endpoint().host == "127.0.0.1");
}

TEST_CASE("TcpStore: a missing server times out", "[comm]") {
  const int port = TcpStore::serve(options_at({"127.0.0.1", 0}))->endpoint().port;
  TcpStore::Options options = options_at({"127.0.0.1", port});
  options.timeout_seconds = 0.1;
  CHECK(code_of([&] { TcpStore::connect(options); }) == ErrorCode::timeout);
  CHECK_THROWS_WITH(
      TcpStore::connect(options),
      ContainsSubstring("rendezvous timed out after 0.1 s at 127.0.0.1:" + std::to_string(port) +
                        ": waiting for rank 0 (") &&
          ContainsSubstring("; see that it is started and that 127.0.0.1 reaches this address and "
                            "port, or raise --timeout"));
}

TEST_CASE("TcpStore: clients may start before the server", "[comm]") {
  const int port = TcpStore::serve(options_at({"127.0.0.1", 0}))->endpoint().port;
  std::string got;
  std::thread client([&] {
    got = TcpStore::connect(options_at({"127.0.0.1", port}))->get("a", 30);
  });
  const auto server = TcpStore::serve(options_at({"127.0.0.1", port}));
  server->set("a", "b");
  client.join();
  CHECK(got == "b");
}

TEST_CASE("TcpStore: time in which a connecting client is suspended does not count", "[comm]") {
  const int port = TcpStore::serve(options_at({"127.0.0.1", 0}))->endpoint().port;
  std::vector<pid_t> clients;
  for (int i = 0; i < 24; ++i) {
    const pid_t client = ::fork();
    REQUIRE(client >= 0);
    if (client == 0) {
      TcpStore::Options options = options_at({"127.0.0.1", port});
      options.timeout_seconds = 2;
      const bool found = code_of([&] { TcpStore::connect(options); }) == ErrorCode::internal;
      ::_exit(found ? 0 : 1);
    }
    // Each at another moment of its first tries.
    const Deadline moment = Deadline::after(50e-6 * i);
    while (!moment.passed()) std::this_thread::yield();
    ::kill(client, SIGSTOP);
    clients.push_back(client);
  }
  test::wait_for_end(clients.front(), Deadline::after(7));
  for (const pid_t client : clients) ::kill(client, SIGCONT);
  const auto server = TcpStore::serve(options_at({"127.0.0.1", port}));
  for (const pid_t client : clients) {
    int status = -1;
    CHECK(::waitpid(client, &status, 0) == client);
    CHECK(status == 0);
  }
}

TEST_CASE("TcpStore: waiting clients are told that rank 0 ended", "[comm]") {
  auto server = TcpStore::serve(options_at({"127.0.0.1", 0}));
  const auto client = TcpStore::connect(options_at(server->endpoint()));
  std::string message;
  std::thread waiting([&] {
    try {
      client->get("never", 30);
    } catch (const Error& error) {
      message = error.what();
    }
  });
  server.reset();
  waiting.join();
  CHECK_THAT(message, ContainsSubstring("closed the connection: rank 0 has ended"));
}

TEST_CASE("TcpStore: a get times out after its own limit if the server is gone", "[comm]") {
  auto server = TcpStore::serve(options_at({"127.0.0.1", 0}));
  TcpStore::Options options = options_at(server->endpoint());
  options.timeout_seconds = 600;  // longer than this test may take
  const auto client = TcpStore::connect(options);
  CHECK_THROWS_WITH(client->get("never", 0.05), "no rank set \"never\" within 0.05 s");
  server.reset();  // the client's connection is closed already: it connects again
  CHECK(code_of([&] { client->get("never", 0.05); }) == ErrorCode::timeout);
  CHECK_THROWS_WITH(client->get("never", 0.05), ContainsSubstring("waiting for rank 0"));
}
