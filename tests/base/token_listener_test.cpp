#include "runtime/os/token_listener.h"

#include <array>
#include <string>

#include "runtime/os/socket.h"
#include "tests/support/catch.h"

using namespace dstrain;

namespace {

constexpr double seconds = 240;
constexpr Magic magic{'t', 'e', 's', 't'};

/// A listener and whom it has let in.
class Server {
 public:
  /// Turns until `done` says so.
  template <class Done>
  void turn_until(Done done) {
    while (!done()) {
      std::vector<pollfd> fds;
      listener.add_polls(fds);
      poll(fds.data(), fds.size(), 20);
      for (TokenListener::Client& client : listener.advance(fds)) {
        clients.push_back(std::move(client));
      }
    }
  }
  [[nodiscard]] UniqueFd connect() const {
    return std::move(connect_tcp({"127.0.0.1", port}, Deadline::after(seconds)).value());
  }

  UniqueFd socket = std::move(listen_tcp({"127.0.0.1", 0}).value());
  int port = bound_port(socket.get());
  TokenListener listener{{std::move(socket), magic, "secret", "test"}};
  std::vector<TokenListener::Client> clients;
};

bool has_input(const UniqueFd& socket) {
  return wait_until_ready(socket.get(), POLLIN, Deadline::after(0));
}

Greeting read_greeting(Server& server, const UniqueFd& client) {
  server.turn_until([&] { return has_input(client); });
  Greeting greeting;
  REQUIRE(receive_all(client.get(), bytes_of(greeting), Deadline::after(seconds)) ==
          Transfer::done);
  CHECK(greeting.magic == magic);
  return greeting;
}

/// Says hello as number 3, with a byte of what follows.
void say(const UniqueFd& client, const ClientHello& hello) {
  REQUIRE(send_all(client.get(), bytes_of(hello), Deadline::after(seconds)) == Transfer::done);
  send_all(client.get(), std::array<std::uint8_t, 1>{'x'}, Deadline::after(seconds));
}

/// Whether the server has closed the connection; reads what came before.
bool is_closed(const UniqueFd& client) {
  std::array<std::uint8_t, 64> rest{};
  return receive_all(client.get(), rest, Deadline::after(0)) == Transfer::closed;
}

void check_let_in(Server& server, const UniqueFd& client) {
  say(client, make_hello(read_greeting(server, client), "secret", 3));
  server.turn_until([&] { return !server.clients.empty(); });
  CHECK(server.clients.front().number == 3);
}

void check_dropped(Server& server, const UniqueFd& client, const ClientHello& hello) {
  say(client, hello);
  server.turn_until([&] { return is_closed(client); });
  CHECK(server.clients.empty());
}

}  // namespace

TEST_CASE("TokenListener: a peer that proves the token is accepted with its number", "[base]") {
  Server server;
  const UniqueFd client = server.connect();
  check_let_in(server, client);
  std::array<std::uint8_t, 1> next{};
  REQUIRE(receive_all(server.clients.front().socket.get(), next, Deadline::after(seconds)) ==
          Transfer::done);
  CHECK(next[0] == 'x');  // what follows the proof is still there
}

TEST_CASE("TokenListener: a hello without the token is dropped", "[base]") {
  Server server;
  const UniqueFd client = server.connect();
  check_dropped(server, client, make_hello(read_greeting(server, client), "guess", 3));
}

/// A proof is of one connection, one purpose and one number.
TEST_CASE("TokenListener: a proof that was made for something else is dropped", "[base]") {
  const std::string what = GENERATE("nonce", "magic", "number");
  CAPTURE(what);
  Server server;
  const UniqueFd client = server.connect();
  Greeting greeting = read_greeting(server, client);
  if (what == "nonce") greeting.nonce[31] ^= 1;
  if (what == "magic") greeting.magic[7] ^= 1;
  ClientHello hello = make_hello(greeting, "secret", 3);
  if (what == "number") hello.number = 2;
  check_dropped(server, client, hello);
}

TEST_CASE("TokenListener: the oldest of too many silent connections is dropped", "[base]") {
  Server server;
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(server.connect());
  server.turn_until([&] { return has_input(clients.back()); });
  CHECK(is_closed(clients.front()));
  check_let_in(server, clients.back());
}
