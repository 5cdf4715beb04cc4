#include "runtime/base/token_proof.h"

#include <span>
#include <vector>

#include "runtime/base/random_bytes.h"
#include "runtime/base/socket.h"

namespace dstrain {

Digest proof_of(Role role, std::string_view token, const Nonce& server, const Nonce& client) {
  std::vector<std::uint8_t> message{static_cast<std::uint8_t>(role)};
  message.insert(message.end(), server.begin(), server.end());
  message.insert(message.end(), client.begin(), client.end());
  return hmac_sha256({reinterpret_cast<const std::uint8_t*>(token.data()), token.size()}, message);
}

ServerHello answer_hello(const ClientHello& hello, std::string_view token, const Nonce& nonce) {
  const Digest expected = proof_of(Role::client, token, nonce, hello.nonce);
  if (!equal_in_constant_time(hello.proof, expected)) return {};
  return {1, proof_of(Role::server, token, nonce, hello.nonce)};
}

TokenAnswer prove_token(int socket, const TokenProof& proof, Deadline deadline) {
  Greeting greeting;
  if (receive_all(socket, bytes_of(greeting), deadline) != Transfer::done) {
    return TokenAnswer::broken;
  }
  if (greeting.magic != proof.magic) return TokenAnswer::stranger;
  const auto nonce = random_bytes<sizeof(Nonce)>();
  const ClientHello hello{nonce, proof_of(Role::client, proof.token, greeting.nonce, nonce)};
  ServerHello answer;
  if (send_all(socket, bytes_of(hello), deadline) != Transfer::done ||
      receive_all(socket, bytes_of(answer), deadline) != Transfer::done) {
    return TokenAnswer::broken;
  }
  const Digest expected = proof_of(Role::server, proof.token, greeting.nonce, nonce);
  const bool accepted = answer.accepted == 1 && equal_in_constant_time(answer.proof, expected);
  return accepted ? TokenAnswer::accepted : TokenAnswer::other_token;
}

}  // namespace dstrain
