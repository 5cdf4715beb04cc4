#include "runtime/comm/store/tcp_client.h"

#include <algorithm>
#include <cmath>

#include <poll.h>

#include "runtime/base/random_bytes.h"
#include "runtime/comm/bytes.h"
#include "runtime/comm/store/protocol.h"

namespace dstrain::comm {
namespace {

/// How long a server may take over one handshake. A server that drops us is tried again.
constexpr double handshake_seconds_max = 10;
constexpr double retry_seconds_min = 0.01;
constexpr double retry_seconds_max = 0.25;

/// True when the server accepted; false when the connection broke and another try may do better.
bool shake_hands(int socket,
                 const Endpoint& endpoint,
                 const std::string& token,
                 Deadline deadline) {
  Greeting greeting;
  if (receive_all(socket, bytes_of(greeting), deadline) != Transfer::done) return false;
  if (greeting.magic != Greeting{}.magic) {
    fail(ErrorCode::comm, "what answers at {} is no dstrain rendezvous: choose another port",
         to_string(endpoint));
  }
  const Nonce nonce = random_bytes<sizeof(Nonce)>();
  const ClientHello hello{nonce, proof_of(Role::client, token, greeting.nonce, nonce)};
  ServerHello answer;
  if (send_all(socket, bytes_of(hello), deadline) != Transfer::done ||
      receive_all(socket, bytes_of(answer), deadline) != Transfer::done) {
    return false;
  }
  const Digest proof = proof_of(Role::server, token, greeting.nonce, nonce);
  if (answer.accepted == 1 && equal_in_constant_time(answer.proof, proof)) return true;
  fail(ErrorCode::comm,
       "the rendezvous at {} has another token: it is another job's, or DSTRAIN_TOKEN differs "
       "between the ranks",
       to_string(endpoint));
}

}  // namespace

UniqueFd connect_to_store(const Endpoint& endpoint, const std::string& token, Deadline deadline) {
  const double seconds = std::round(deadline.remaining_seconds() * 1e3) / 1e3;  // for the message
  double retry_seconds = retry_seconds_min;
  while (true) {
    Result<UniqueFd> socket = connect_tcp(endpoint, deadline);
    if (socket.ok() && shake_hands(socket.value().get(), endpoint, token,
                                   deadline.at_most(handshake_seconds_max))) {
      return std::move(socket.value());
    }
    if (deadline.passed()) {
      fail(ErrorCode::timeout, "rendezvous timed out after {:g} s at {}: waiting for rank 0 ({})",
           seconds, to_string(endpoint), socket.ok() ? "the connection breaks" : socket.error());
    }
    ::poll(nullptr, 0, deadline.at_most(retry_seconds).remaining_ms());
    retry_seconds = std::min(2 * retry_seconds, retry_seconds_max);
  }
}

}  // namespace dstrain::comm
