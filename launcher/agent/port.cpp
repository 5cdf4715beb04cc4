#include "launcher/agent/port.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/os/shared_place.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

constexpr int ports_tried_max = 1000;
constexpr int last_port = 65535;
constexpr const char* every_address = "0.0.0.0";

/// Opens a file with a byte to lock for each port of this network, which other users cannot read.
/// None if it cannot be opened.
UniqueFd open_claims() {
  struct stat network {};
  ::stat("/proc/self/ns/net", &network);
  const std::string file = fmt::format("ports-{}", network.st_ino);
  try {
    const UniqueFd directory =
        open_own_directory(own_directory("/tmp", fmt::format("dstrain-{}", ::geteuid())));
    constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    return UniqueFd(::openat(directory.get(), file.c_str(), flags, S_IRUSR | S_IWUSR));
  } catch (const Error&) {
    return {};
  }
}

/// None when another launch of this user has the port. The kernel frees it when the file is closed.
std::optional<UniqueFd> claim_port(int port) {
  UniqueFd claims = open_claims();
  struct flock byte {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = port;
  byte.l_len = 1;
  const bool failed = claims && ::fcntl(claims.get(), F_OFD_SETLK, &byte) != 0;
  const bool taken =
      failed && (errno == EAGAIN || errno == EACCES);  // else locks are not supported
  return taken ? std::nullopt : std::optional(std::move(claims));
}

/// None if it is in use. Claims the port first, because listening on it would disturb its owner.
std::optional<ReservedPort> try_port(const std::string& address, int port) {
  std::optional<UniqueFd> claim = claim_port(port);
  if (!claim) return std::nullopt;
  Result<UniqueFd> listener = listen_tcp({address, port});
  if (listener.ok()) return ReservedPort{port, std::move(listener.value()), std::move(*claim)};
  if (listener.failure().passing) return std::nullopt;
  return ReservedPort{port, {}, std::move(*claim)};
}

/// Takes any port that the kernel offers.
std::optional<ReservedPort> try_any_port(const std::string& address) {
  Result<UniqueFd> listener = listen_tcp({address, 0});
  if (!listener.ok()) return std::nullopt;
  const int port = bound_port(listener.value().get());
  std::optional<UniqueFd> claim = claim_port(port);
  if (!claim) return std::nullopt;
  return ReservedPort{port, std::move(listener.value()), std::move(*claim)};
}

std::string describe_use(const PortRequest& request) {
  switch (request.rule) {
    case PortRule::default_of_all:
      return fmt::format(
          "port {} (the default of --master_port) is in use; pass another --master_port to all "
          "launchers",
          request.port);
    case PortRule::typed_to_all:
      return fmt::format("--master_port {}: the port is in use; pass another to all launchers",
                         request.port);
    default:
      return fmt::format(
          "--master_port {}: the port is in use; pass another, or leave it out to use a free one",
          request.port);
  }
}

ReservedPort reserve_free_port(const std::string& address, int first, int last) {
  const bool any = last == 0;
  const int tried = any ? std::min(first + ports_tried_max - 1, last_port) : last;
  for (int port = first; port <= tried; ++port) {
    if (std::optional<ReservedPort> reserved = try_port(address, port)) return std::move(*reserved);
  }
  if (!any) fail(ErrorCode::remote, "no port of {}-{} is free; widen --port_range", first, last);
  if (std::optional<ReservedPort> reserved = try_any_port(address)) return std::move(*reserved);
  fail(ErrorCode::remote, "found no free port from {} on; pass --master_port PORT", first);
}

}  // namespace

ReservedPort reserve_port(const PortRequest& request) {
  const std::string address = request.address.empty() ? every_address : request.address;
  if (!request.exactly()) return reserve_free_port(address, request.port, request.last);
  std::optional<ReservedPort> reserved = try_port(address, request.port);
  if (!reserved) fail(ErrorCode::usage, "{}", describe_use(request));
  return std::move(*reserved);
}

}  // namespace dstrain::launcher
