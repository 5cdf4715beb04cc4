#include "launcher/process/pipes.h"

#include <array>
#include <cerrno>
#include <span>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/os/fd_io.h"

namespace dstrain::launcher {

PipeEnds make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) fail_errno(errno, "make a pipe");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

UniqueFd make_text_file(const std::string& text) {
  UniqueFd file(memfd_create("dstrain-text", MFD_CLOEXEC));
  if (!file) fail_errno(errno, "memfd_create");
  write_fully(file.get(), std::as_bytes(std::span(text)), "a file in memory");
  if (lseek(file.get(), 0, SEEK_SET) != 0) fail_errno(errno, "lseek");
  return file;
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

void read_available(UniqueFd& pipe, FunctionRef<void(std::string_view)> on_part) {
  std::array<char, 4096> part;
  while (pipe) {
    const ssize_t got = read(pipe.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return pipe.reset();
    on_part({part.data(), static_cast<std::size_t>(got)});
  }
}

void read_tail(UniqueFd& pipe, std::string& tail, std::size_t bytes_max) {
  read_available(pipe, [&](std::string_view part) {
    tail.append(part);
    if (tail.size() > bytes_max) tail.erase(0, tail.size() - bytes_max);
  });
}

}  // namespace dstrain::launcher
