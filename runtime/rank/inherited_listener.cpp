#include "runtime/rank/inherited_listener.h"

#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <sys/socket.h>

#include "runtime/base/number.h"
#include "runtime/os/socket.h"

namespace dstrain {
namespace {

/// Returns 0 if `fd` is not a listening TCP socket.
int port_listened_at(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  int listens = 0;
  socklen_t size = sizeof listens;
  const bool network = ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
                       (address.ss_family == AF_INET || address.ss_family == AF_INET6);
  if (!network || ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return 0;
  return listens != 0 ? bound_port(fd) : 0;
}

}  // namespace

UniqueFd inherited_listener(int port) {
  const char* const text = std::getenv(env::listener_fd);
  const auto fd = parse_number<int>(text != nullptr ? text : "");
  if (!fd || port_listened_at(*fd) != port || ::fcntl(*fd, F_SETFD, FD_CLOEXEC) != 0) return {};
  return UniqueFd(*fd);
}

}  // namespace dstrain
