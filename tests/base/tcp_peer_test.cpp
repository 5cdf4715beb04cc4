#include "runtime/os/tcp_peer.h"

#include <array>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/socket.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace dstrain;

namespace {

constexpr uid_t nobody = 65534;

/// A connection at whose other end a process of this user is, until the object goes.
class Connection {
 public:
  Connection(const std::string& host, uid_t user) {
    const UniqueFd listener = std::move(listen_tcp({host, 0}).value());
    const Endpoint endpoint{host, bound_port(listener.get())};
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd waits(ends[0]);
    release_ = UniqueFd(ends[1]);
    child_ = ::fork();
    if (child_ == 0) {
      release_.reset();
      if (user != ::geteuid() && ::setuid(user) != 0) ::_exit(1);
      const auto made = connect_tcp(endpoint, Deadline::after(60));
      char byte = 0;
      const ssize_t released = ::read(waits.get(), &byte, 1);
      ::_exit(made.ok() && released == 0 ? 0 : 1);
    }
    REQUIRE(wait_until_ready(listener.get(), POLLIN, Deadline::after(60)));
    socket = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection(Connection&&) = delete;
  Connection& operator=(Connection&&) = delete;
  ~Connection() { end(); }

  /// The other end closes.
  void end() {
    release_.reset();
    if (child_ > 0) ::waitpid(std::exchange(child_, 0), nullptr, 0);
  }

  UniqueFd socket;

 private:
  UniqueFd release_;
  pid_t child_ = 0;
};

}  // namespace

TEST_CASE("TcpPeer: the user of a connection from this machine is known", "[base][socket]") {
  const std::string host = GENERATE("127.0.0.1", "::1");
  Connection own(host, ::geteuid());
  CHECK(tcp_peer_user(own.socket.get()) == ::geteuid());
  CHECK(is_own_tcp_peer(own.socket.get()));
  own.end();
  CHECK_FALSE(is_own_tcp_peer(own.socket.get()));
}

TEST_CASE("TcpPeer: another user is a stranger", "[base][socket]") {
  if (::geteuid() != 0) test::skip("only root can be another user");
  const std::string host = GENERATE("127.0.0.1", "::1");
  const Connection other(host, nobody);
  CHECK(tcp_peer_user(other.socket.get()) == nobody);
  CHECK_FALSE(is_own_tcp_peer(other.socket.get()));
}

TEST_CASE("TcpPeer: a connection that was not accepted has no user", "[base][socket]") {
  const UniqueFd listener = std::move(listen_tcp({"127.0.0.1", 0}).value());
  const Endpoint endpoint{"127.0.0.1", bound_port(listener.get())};
  const UniqueFd client = std::move(connect_tcp(endpoint, Deadline::after(60)).value());
  CHECK_FALSE(tcp_peer_user(client.get()));
  const UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  CHECK(tcp_peer_user(client.get()) == ::geteuid());
}
