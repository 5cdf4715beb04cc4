#include "launcher/process/pipes.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/error.h"

namespace dstrain::launcher {

PipeEnds make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) fail_errno(errno, "make a pipe");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

SocketPair make_socket_pair(int type) {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    fail_errno(errno, "make a pair of sockets");
  }
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void make_non_blocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    fail_errno(errno, "make a pipe non-blocking");
  }
}

}  // namespace dstrain::launcher
