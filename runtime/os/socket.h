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

/// A host (name, IPv4 or IPv6 address) and a TCP port. localhost is the loopback, without a
/// resolver.
struct Endpoint {
  std::string host;
  int port = 0;
};

/// Returns "127.0.0.1:29500", "[::1]:29500".
std::string to_string(const Endpoint& endpoint);

/// Whether `host` is a loopback address, or a name with only loopback addresses.
bool is_loopback(const std::string& host);

/// Returns a non-blocking socket that listens only on the address of `endpoint`. Port 0 takes a
/// free one. The failure names the endpoint. For a port in use it has a remedy, and is `passing`.
Result<UniqueFd> listen_tcp(const Endpoint& endpoint);

/// Returns the port that a socket is bound to.
int bound_port(int socket);

/// Returns the addresses of this machine at which others may reach it, in digits, without loopback
/// and addresses that are valid only within one network (fe80::1).
std::vector<std::string> own_addresses();

/// The two ends of a TCP connection, in digits.
struct ConnectedAddresses {
  std::string own;
  std::string peer;
};
/// Returns none for anything but a connected TCP socket.
std::optional<ConnectedAddresses> connected_addresses(int socket);

/// Returns this machine's address that reaches `endpoint`, in digits: "10.0.0.2". Sends no data. A
/// failure is `passing` if the name cannot be resolved, because it may become known; a network
/// without a route is not.
Result<std::string> local_address_towards(const Endpoint& endpoint);

// Standstills of this process do not count in the waits below (Deadline::skip_standstill). They
// extend the caller's deadline, so that later waits have their full time.

/// Returns a non-blocking, connected socket without Nagle's delay: one try over all addresses of
/// the host. A failure is `passing` if the host refuses the connection, or its name is not known
/// yet.
Result<UniqueFd> connect_tcp(const Endpoint& endpoint, Deadline& deadline);
inline Result<UniqueFd> connect_tcp(const Endpoint& endpoint, Deadline&& deadline) {
  return connect_tcp(endpoint, deadline);
}

/// Returns the user of the process at the other end of a Unix socket; none if unknown.
std::optional<uid_t> peer_user(int socket);

/// Returns the process that began to listen, for a connection that was made to it. 0 if unknown, as
/// from another PID namespace.
pid_t peer_process(int socket);

/// Waits for `events` of poll(2). Returns false if the deadline passes first. Continues after
/// signals. Returns true also if poll fails: the next call on the socket reports the error.
bool wait_until_ready(int socket, short events, Deadline& deadline);
inline bool wait_until_ready(int socket, short events, Deadline&& deadline) {
  return wait_until_ready(socket, events, deadline);
}

/// The result of moving bytes through a non-blocking socket.
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

/// Returns the bytes of a message of plain data. A type with padding does not compile, because the
/// padding's bytes are undefined.
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
