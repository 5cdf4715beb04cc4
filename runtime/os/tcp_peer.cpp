#include "runtime/os/tcp_peer.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace dstrain {
namespace {

/// The list is not a snapshot: an entry may be missed while others come and go.
constexpr int looks = 3;

/// Returns the address in the kernel's format: words of the address as in memory, and the port.
/// Empty if it is not an internet address.
std::string listed_address(const sockaddr_storage& address) {
  std::array<std::uint32_t, 4> words{};
  const bool v4 = address.ss_family == AF_INET;
  if (!v4 && address.ss_family != AF_INET6) return "";
  // The port lies at the same place for IPv4 and IPv6.
  const auto& as_v4 = reinterpret_cast<const sockaddr_in&>(address);
  const auto& as_v6 = reinterpret_cast<const sockaddr_in6&>(address);
  const std::size_t bytes = v4 ? sizeof as_v4.sin_addr : sizeof as_v6.sin6_addr;
  std::memcpy(words.data(), v4 ? static_cast<const void*>(&as_v4.sin_addr) : &as_v6.sin6_addr,
              bytes);
  std::string text;
  for (std::size_t i = 0; i < bytes / sizeof words[0]; ++i) text += fmt::format("{:08X}", words[i]);
  return text + fmt::format(":{:04X}", ntohs(as_v4.sin_port));
}

/// Returns the user of the socket between `own` and `peer`. One that no process holds is listed as
/// root's, without an inode.
std::optional<uid_t> listed_user(const char* list,
                                 const std::string& own,
                                 const std::string& peer) {
  std::ifstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped;
    std::string first;
    std::string second;
    words >> skipped >> first >> second;
    if (first != own || second != peer) continue;
    uid_t user = 0;
    std::uint64_t inode = 0;
    for (int i = 0; i < 4; ++i) words >> skipped;  // state, queues, timer, retransmissions
    if (words >> user >> skipped >> inode && inode != 0) return user;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uid_t> tcp_peer_user(int socket) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_length = sizeof own;
  socklen_t peer_length = sizeof peer;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_length) != 0 ||
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_length) != 0) {
    return std::nullopt;
  }
  // That of this thread: a process may have threads in several network namespaces.
  const bool v4 = own.ss_family == AF_INET;
  const char* const list = v4 ? "/proc/thread-self/net/tcp" : "/proc/thread-self/net/tcp6";
  std::optional<uid_t> user;
  for (int look = 0; look < looks && !user; ++look) {
    user = listed_user(list, listed_address(peer), listed_address(own));
  }
  return user;
}

bool is_own_tcp_peer(int socket) {
  const std::optional<uid_t> user = tcp_peer_user(socket);
  return user && (*user == ::geteuid() || *user == 0);
}

}  // namespace dstrain
