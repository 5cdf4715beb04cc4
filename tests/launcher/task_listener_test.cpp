#include "launcher/hosts/task_listener.h"

#include <string>

#include <catch2/catch.hpp>

#include "launcher/protocol/protocol.h"
#include "runtime/base/socket.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

constexpr double seconds = 240;

/// A listener for ranks 0 to 3, and who wants to be one.
class Meeting {
 public:
  /// Turns until `done` says so.
  template <class Done>
  void turn_until(Done done) {
    while (!done()) {
      std::vector<pollfd> fds;
      listener.add_polls(fds);
      poll(fds.data(), fds.size(), 20);
      for (TaskListener::Arrival& arrival : listener.advance(fds)) {
        arrivals.push_back(std::move(arrival));
      }
    }
  }
  [[nodiscard]] UniqueFd connect() const {
    return std::move(connect_tcp({"127.0.0.1", port}, Deadline::after(seconds)).value());
  }

  UniqueFd socket = std::move(listen_tcp({"127.0.0.1", 0}).value());
  int port = bound_port(socket.get());
  TaskListener listener{{std::move(socket), "secret", 4}};
  std::vector<TaskListener::Arrival> arrivals;
};

/// The client's side without waiting: what has to be sent once the greeting is there.
ClientHello hello_to(const Greeting& greeting, const std::string& secret) {
  ClientHello hello;
  hello.proof = proof_of(Role::client, secret, greeting.nonce, hello.nonce);
  return hello;
}

bool has_input(const UniqueFd& socket) {
  return wait_until_ready(socket.get(), POLLIN, Deadline::after(0));
}

/// Proves the secret as far as it is right and says the rank, with a byte of what follows.
void knock(Meeting& meeting, const UniqueFd& client, const std::string& secret, char rank) {
  meeting.turn_until([&] { return has_input(client); });
  Greeting greeting;
  REQUIRE(receive_all(client.get(), bytes_of(greeting), Deadline::after(seconds)) ==
          Transfer::done);
  CHECK(greeting.magic == agents_magic);
  const ClientHello hello = hello_to(greeting, secret);
  REQUIRE(send_all(client.get(), bytes_of(hello), Deadline::after(seconds)) == Transfer::done);
  const std::array<std::uint8_t, 5> said{static_cast<std::uint8_t>(rank), 0, 0, 0, 'x'};
  send_all(client.get(), said, Deadline::after(seconds));
}

}  // namespace

TEST_CASE("Task listener: who proves the secret arrives with its rank", "[launcher][tasks]") {
  Meeting meeting;
  const UniqueFd client = meeting.connect();
  knock(meeting, client, "secret", 3);
  meeting.turn_until([&] { return !meeting.arrivals.empty(); });
  CHECK(meeting.arrivals.front().rank == 3);
  std::array<std::uint8_t, 1> next{};
  REQUIRE(receive_all(meeting.arrivals.front().socket.get(), next, Deadline::after(seconds)) ==
          Transfer::done);
  CHECK(next[0] == 'x');  // what follows is the agent's, and still there
}

TEST_CASE("Task listener: strangers and ranks that there are not are dropped",
          "[launcher][tasks]") {
  const auto [secret, rank] = GENERATE(table<const char*, char>({{"guess", 1}, {"secret", 4}}));
  Meeting meeting;
  const UniqueFd client = meeting.connect();
  knock(meeting, client, secret, rank);
  const auto closed = [&] {
    std::array<std::uint8_t, 64> rest{};
    return receive_all(client.get(), rest, Deadline::after(0)) == Transfer::closed;
  };
  meeting.turn_until(closed);
  CHECK(meeting.arrivals.empty());
}

TEST_CASE("Task listener: of too many who say nothing the oldest goes", "[launcher][tasks]") {
  Meeting meeting;
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(meeting.connect());
  meeting.turn_until([&] { return has_input(clients.back()); });
  Greeting greeting;
  REQUIRE(receive_all(clients.front().get(), bytes_of(greeting), Deadline::after(seconds)) ==
          Transfer::done);
  std::array<std::uint8_t, 1> more{};
  CHECK(receive_all(clients.front().get(), more, Deadline::after(seconds)) == Transfer::closed);
  knock(meeting, clients.back(), "secret", 0);
  meeting.turn_until([&] { return !meeting.arrivals.empty(); });
  CHECK(meeting.arrivals.front().rank == 0);
}
