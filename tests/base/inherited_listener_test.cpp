#include "runtime/rank/inherited_listener.h"

#include <array>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/os/socket.h"
#include "tests/support/catch.h"

using namespace dstrain;

namespace {

/// What is taken over where the variable says so.
UniqueFd take(const std::string& named, int port) {
  ::setenv(env::listener_fd, named.c_str(), 1);
  UniqueFd taken = inherited_listener(port);
  ::unsetenv(env::listener_fd);
  return taken;
}

}  // namespace

TEST_CASE("InheritedListener: a listener is taken over and not inherited further",
          "[base][socket]") {
  const UniqueFd listener = std::move(listen_tcp({"127.0.0.1", 0}).value());
  const int port = bound_port(listener.get());
  const int fd = ::dup(listener.get());  // without FD_CLOEXEC, as a rank inherits it
  const UniqueFd taken = take(std::to_string(fd), port);
  REQUIRE(taken.get() == fd);
  CHECK(::fcntl(fd, F_GETFD) == FD_CLOEXEC);
  CHECK(connect_tcp({"127.0.0.1", port}, Deadline::after(60)).ok());
}

TEST_CASE("InheritedListener: other descriptors are left alone", "[base][socket]") {
  const UniqueFd listener = std::move(listen_tcp({"127.0.0.1", 0}).value());
  const int port = bound_port(listener.get());
  const UniqueFd client = std::move(connect_tcp({"127.0.0.1", port}, Deadline::after(60)).value());
  std::array<int, 2> local{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, local.data()) == 0);
  const UniqueFd first(local[0]);
  const UniqueFd second(local[1]);
  CHECK_FALSE(inherited_listener(port));
  CHECK_FALSE(take(std::to_string(listener.get()), port + 1));  // of another job
  CHECK_FALSE(take(std::to_string(client.get()), bound_port(client.get())));
  for (const std::string& named : {std::to_string(local[0]), std::string("0"),
                                   std::string("1000000"), std::string("-1"), std::string("x")}) {
    CAPTURE(named);
    CHECK_FALSE(take(named, port));
  }
  CHECK(::fcntl(first.get(), F_GETFD) >= 0);
}
