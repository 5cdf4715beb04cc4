#include "launcher/agent/port.h"

#include <cstring>
#include <optional>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr int ports_tried_max = 1000;

template <class Address>
bool can_bind(int fd, const Address& address, std::size_t bytes) {
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(bytes)) ==
         0;
}

/// Whether no program listens on the port. Connections that wait out their end do not count.
bool is_port_free(int port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return can_bind(fd.get(), address, sizeof address);
}

/// The first byte of an abstract name is 0; no file appears and the kernel frees it at our death.
UniqueFd reserve_name(int port) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) fail_errno(errno, "make a socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("dstrain-port-{}", port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const std::size_t bytes = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  return can_bind(fd.get(), address, bytes) ? std::move(fd) : UniqueFd();
}

std::optional<ReservedPort> try_port(int port) {
  UniqueFd reservation = reserve_name(port);
  if (!reservation || !is_port_free(port)) return std::nullopt;
  return ReservedPort{port, std::move(reservation)};
}

std::string describe_use(const PortRequest& request) {
  switch (request.rule) {
    case PortRule::default_of_all:
      return fmt::format(
          "port {} (the default of --master_port) is in use; give all launchers another "
          "--master_port",
          request.port);
    case PortRule::typed_to_all:
      return fmt::format("--master_port {}: the port is in use; give all launchers another",
                         request.port);
    default:
      return fmt::format(
          "--master_port {}: the port is in use; give another, or none to take a free one",
          request.port);
  }
}

ReservedPort reserve_free_port(int first) {
  for (int port = first; port < first + ports_tried_max && port <= 65535; ++port) {
    if (std::optional<ReservedPort> reserved = try_port(port)) return std::move(*reserved);
  }
  fail(ErrorCode::remote, "no free port from {} on; give one with --master_port", first);
}

}  // namespace

ReservedPort reserve_port(const PortRequest& request) {
  if (!request.exactly()) return reserve_free_port(request.port);
  std::optional<ReservedPort> reserved = try_port(request.port);
  if (!reserved) fail(ErrorCode::usage, "{}", describe_use(request));
  return std::move(*reserved);
}

}  // namespace dstrain::launcher
