#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/deadline.h"
#include "runtime/base/result.h"
#include "runtime/base/unique_handle.h"

namespace dstrain {

/// A host (name, IPv4 or IPv6 address) and a TCP port. localhost is the loopback, and no resolver
/// is asked about it.
struct Endpoint {
  std::string host;
  int port = 0;
};

/// "127.0.0.1:29500", "[::1]:29500".
std::string to_string(const Endpoint& endpoint);

/// Whether `host` is a loopback address, or a name of which every address is one.
bool is_loopback(const std::string& host);

/// A non-blocking socket that listens on the address of `endpoint` and on no other. Port 0 takes a
/// free one. The failure names the endpoint, and a port in use with the remedy: that one passes.
Result<UniqueFd> listen_tcp(const Endpoint& endpoint);

/// The port that a socket is bound to.
int bound_port(int socket);

/// The addresses of this machine at which others may reach it, in digits: none of loopback, and
/// none that means something within one network alone (fe80::1).
std::vector<std::string> own_addresses();

/// The two ends of a TCP connection, in digits.
struct ConnectedAddresses {
  std::string own;
  std::string peer;
};
/// None for what is no connected TCP socket.
std::optional<ConnectedAddresses> connected_addresses(int socket);

/// The own address that reaches `endpoint`, in digits: "10.0.0.2". Sends nothing there. A failure
/// passes when the name cannot be resolved, as it may become known; a network without a route
/// stays.
Result<std::string> local_address_towards(const Endpoint& endpoint);

// Standstills of this process do not count in the waits below (Deadline::skip_standstill): they put
// off the caller's deadline, so that what follows such a wait has its time, too.

/// A non-blocking, connected socket without Nagle's delay: one try over all addresses of the host.
/// A failure passes where the host answers that nobody listens there, or its name is not known yet.
Result<UniqueFd> connect_tcp(const Endpoint& endpoint, Deadline& deadline);
inline Result<UniqueFd> connect_tcp(const Endpoint& endpoint, Deadline&& deadline) {
  return connect_tcp(endpoint, deadline);
}

/// The user whose process is at the other end of a Unix socket; none when that cannot be told.
std::optional<uid_t> peer_user(int socket);

/// That process itself, of a connection that was made to it: who began to listen. 0 when that
/// cannot be told, as from another PID namespace.
pid_t peer_process(int socket);

/// Waits for `events` of poll(2); false when the deadline passes first. Goes on after signals. True
/// too when poll fails: the next call on the socket says what it is.
bool wait_until_ready(int socket, short events, Deadline& deadline);
inline bool wait_until_ready(int socket, short events, Deadline&& deadline) {
  return wait_until_ready(socket, events, deadline);
}

/// What became of moving bytes through a non-blocking socket.
enum class Transfer { done, timed_out, closed };

/// Sends or receives all of `bytes`.
Transfer send_all(int socket, std::span<const std::uint8_t> bytes, Deadline& deadline);
Transfer receive_all(int socket, std::span<std::uint8_t> bytes, Deadline& deadline);
inline Transfer send_all(int socket, std::span<const std::uint8_t> bytes, Deadline&& deadline) {
  return send_all(socket, bytes, deadline);
}
inline Transfer receive_all(int socket, std::span<std::uint8_t> bytes, Deadline&& deadline) {
  return receive_all(socket, bytes, deadline);
}

/// The bytes of a message of plain data. A type with padding is refused: what lies there is
/// unknown.
template <class Message>
requires std::has_unique_object_representations_v<Message> std::span<std::uint8_t> bytes_of(
    Message& message) {
  return {reinterpret_cast<std::uint8_t*>(&message), sizeof(Message)};
}
template <class Message>
requires std::has_unique_object_representations_v<Message> std::span<const std::uint8_t> bytes_of(
    const Message& message) {
  return {reinterpret_cast<const std::uint8_t*>(&message), sizeof(Message)};
}

}  // namespace dstrain
