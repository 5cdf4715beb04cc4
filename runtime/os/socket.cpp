#include "runtime/os/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

namespace dstrain {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
};

std::string text_of(int errno_value) {
  return std::generic_category().message(errno_value);
}

/// A name server may start late, and so may a name: Kubernetes publishes a pod's once it runs.
bool may_resolve_later(int status) {
  return status == EAI_AGAIN || status == EAI_NONAME || status == EAI_NODATA;
}

/// Not AI_ADDRCONFIG: it hides 127.0.0.1 if loopback is the only network.
Result<std::vector<Address>> look_up(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (status != 0) {
    return Failure{
        fmt::format("cannot resolve host \"{}\": {}", endpoint.host, ::gai_strerror(status)),
        may_resolve_later(status)};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    std::memcpy(&addresses.emplace_back().storage, at->ai_addr, at->ai_addrlen);
    addresses.back().length = at->ai_addrlen;
  }
  return addresses;
}

/// localhost is the loopback by definition (RFC 6761), so no resolver is asked, which could take
/// time.
Result<std::vector<Address>> resolve(const Endpoint& endpoint) {
  if (::strcasecmp(endpoint.host.c_str(), "localhost") != 0) return look_up(endpoint);
  std::vector<Address> loopback = look_up({"127.0.0.1", endpoint.port}).value();
  loopback.push_back(look_up({"::1", endpoint.port}).value().front());
  return loopback;
}

/// How long resolve() may take: waiting for a name server does not count as a standstill.
double resolve_seconds_max(const std::string& host) {
  in6_addr bytes{};
  const bool in_digits = ::inet_pton(AF_INET, host.c_str(), &bytes) == 1 ||
                         ::inet_pton(AF_INET6, host.c_str(), &bytes) == 1;
  return in_digits ? 0 : 60;
}

UniqueFd open_socket(const Address& address) {
  return UniqueFd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// Whether the kernel has connected a socket to itself: for a port of the ephemeral range without a
/// listener, connect() may get that very port as its own.
bool is_joined_to_itself(int socket) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_length = sizeof(own);
  socklen_t peer_length = sizeof(peer);
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0;
}

/// Returns 0, or the errno of the failure.
int connect_socket(int socket, const Address& address, Deadline& deadline) {
  if (::connect(socket, address.get(), address.length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_until_ready(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

bool is_loopback_address(const Address& address) {
  if (address.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof(v4));
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  if (address.family() != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.storage, sizeof(v6));
  return std::memcmp(&v6.sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)) == 0;
}

/// Returns the address in digits; empty if it is not an IP address.
std::string digits_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return "";
  const int failed =
      ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text.data() : "";
}

std::optional<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const bool is_v6_address = endpoint.host.find(':') != std::string::npos;
  if (is_v6_address) return fmt::format("[{}]:{}", endpoint.host, endpoint.port);
  return fmt::format("{}:{}", endpoint.host, endpoint.port);
}

bool is_loopback(const std::string& host) {
  const auto addresses = resolve({host, 0});
  if (!addresses.ok()) return false;
  return std::ranges::all_of(addresses.value(), is_loopback_address);
}

Result<UniqueFd> listen_tcp(const Endpoint& endpoint) {
  const auto addresses = resolve(endpoint);
  if (!addresses.ok()) return Failure{addresses.error()};
  int error = EADDRNOTAVAIL;
  for (const Address& address : addresses.value()) {
    UniqueFd socket = open_socket(address);
    const int on = 1;
    if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (socket && ::bind(socket.get(), address.get(), address.length) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0) {
      return socket;
    }
    error = errno;
    if (error == EADDRINUSE) break;  // peers would find the other process
  }
  if (error == EADDRINUSE) {
    return Failure{fmt::format("port {} of {} is in use, maybe by another job: choose another port",
                               endpoint.port, endpoint.host),
                   true};
  }
  return Failure{
      fmt::format("cannot listen at {}: {}", to_string(endpoint),
                  error == EADDRNOTAVAIL ? "it is no address of this machine" : text_of(error))};
}

int bound_port(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    fail_errno(errno, "getsockname");
  }
  // The port is at the same offset for IPv4 and IPv6.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

Result<UniqueFd> connect_tcp(const Endpoint& endpoint, Deadline& deadline) {
  const auto addresses = resolve(endpoint);
  deadline.skip_standstill(resolve_seconds_max(endpoint.host));
  if (!addresses.ok()) return addresses.failure();
  int error = EADDRNOTAVAIL;
  for (const Address& address : addresses.value()) {
    UniqueFd socket = open_socket(address);
    error = socket ? connect_socket(socket.get(), address, deadline) : errno;
    deadline.skip_standstill();
    if (error == 0 && is_joined_to_itself(socket.get())) error = ECONNREFUSED;
    if (error != 0) continue;
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return socket;
  }
  return Failure{text_of(error), error == ECONNREFUSED};
}

Result<std::string> local_address_towards(const Endpoint& endpoint) {
  const auto addresses = resolve(endpoint);
  if (!addresses.ok()) return addresses.failure();
  int error = EADDRNOTAVAIL;
  for (const Address& there : addresses.value()) {
    // Connecting a datagram socket only looks up the route.
    const UniqueFd socket(::socket(there.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    if (socket && ::connect(socket.get(), there.get(), there.length) == 0 &&
        ::getsockname(socket.get(), address, &length) == 0) {
      std::string text = digits_of(address, length);
      if (!text.empty()) return text;
    }
    error = errno;
  }
  return Failure{fmt::format("no route to {}: {}", endpoint.host, text_of(error))};
}

std::vector<std::string> own_addresses() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) fail_errno(errno, "getifaddrs");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(first, ::freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* at = list.get(); at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const bool v4 = at->ifa_addr->sa_family == AF_INET;
    const std::string text =
        digits_of(at->ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (text.empty() || text.find('%') != text.npos || is_loopback(text)) continue;
    addresses.push_back(text);
  }
  return addresses;
}

std::optional<ConnectedAddresses> connected_addresses(int socket) {
  Address own;
  Address peer;
  own.length = peer.length = sizeof(sockaddr_storage);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own.storage), &own.length) != 0 ||
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0) {
    return std::nullopt;
  }
  ConnectedAddresses both{digits_of(own.get(), own.length), digits_of(peer.get(), peer.length)};
  if (both.own.empty() || both.peer.empty()) return std::nullopt;
  return both;
}

std::optional<uid_t> peer_user(int socket) {
  const std::optional<ucred> peer = peer_of(socket);
  return peer ? std::optional(peer->uid) : std::nullopt;
}

pid_t peer_process(int socket) {
  return peer_of(socket).value_or(ucred()).pid;
}

bool wait_until_ready(int socket, short events, Deadline& deadline) {
  constexpr double slice_seconds = 1;
  pollfd entry{socket, events, 0};
  while (true) {
    const int most_ms = deadline.at_most(slice_seconds).remaining_ms();
    const int ready = ::poll(&entry, 1, most_ms);
    deadline.skip_standstill(slice_seconds);  // includes the short work before
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    if (ready == 0 && deadline.passed()) return false;
  }
}

Transfer send_all(int socket, std::span<const std::uint8_t> bytes, Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_until_ready(socket, POLLOUT, deadline)) return Transfer::timed_out;
    } else if (errno != EINTR) {
      return Transfer::closed;
    }
  }
  return Transfer::done;
}

Transfer receive_all(int socket, std::span<std::uint8_t> bytes, Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EAGAIN) {
      if (!wait_until_ready(socket, POLLIN, deadline)) return Transfer::timed_out;
    } else if (got == 0 || errno != EINTR) {
      return Transfer::closed;
    }
  }
  return Transfer::done;
}

}  // namespace dstrain
