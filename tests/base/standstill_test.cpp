// A process that is suspended while it waits has, once it goes on, the time that it had.
#include <array>
#include <cstdint>

#include <sys/socket.h>
#include <sys/wait.h>

#include "runtime/os/socket.h"
#include "tests/support/catch.h"
#include "tests/support/process_end.h"

using namespace dstrain;

TEST_CASE("Standstill: time in which the process was suspended does not end a socket wait",
          "[base]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  const UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  const pid_t waiting = ::fork();
  REQUIRE(waiting >= 0);
  if (waiting == 0) {
    std::array<std::uint8_t, 1> byte{};
    ::_exit(receive_all(theirs.get(), byte, Deadline::after(4)) == Transfer::done ? 0 : 1);
  }
  test::suspend(waiting, 7);
  CHECK_FALSE(test::wait_for_end(waiting, Deadline::after(0.5)));
  CHECK(::send(ours.get(), "x", 1, MSG_NOSIGNAL) == 1);
  int status = -1;
  CHECK(::waitpid(waiting, &status, 0) == waiting);
  CHECK(status == 0);
}
