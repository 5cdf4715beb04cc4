#include "runtime/os/token_proof.h"

#include <span>
#include <vector>

#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"

namespace dstrain {
namespace {

enum class Role : std::uint8_t { client = 'c', server = 's' };

void append(std::vector<std::uint8_t>& message, std::span<const std::uint8_t> bytes) {
  message.insert(message.end(), bytes.begin(), bytes.end());
}

Digest proof_of(Role role,
                std::string_view token,
                const Greeting& greeting,
                const ClientHello& hello) {
  std::vector<std::uint8_t> message{static_cast<std::uint8_t>(role)};
  append(message, bytes_of(greeting));
  append(message, hello.nonce);
  append(message, bytes_of(hello.number));
  return hmac_sha256({reinterpret_cast<const std::uint8_t*>(token.data()), token.size()}, message);
}

}  // namespace

ClientHello make_hello(const Greeting& greeting, std::string_view token, std::uint32_t number) {
  ClientHello hello{.nonce = random_bytes<sizeof(Nonce)>(), .number = number};
  hello.proof = proof_of(Role::client, token, greeting, hello);
  return hello;
}

ServerHello answer_hello(const Greeting& greeting,
                         std::string_view token,
                         const ClientHello& hello) {
  const Digest expected = proof_of(Role::client, token, greeting, hello);
  if (!equal_in_constant_time(hello.proof, expected)) return {};
  return {1, proof_of(Role::server, token, greeting, hello)};
}

TokenAnswer prove_token(int socket, const TokenProof& proof, Deadline& deadline) {
  Greeting greeting;
  if (receive_all(socket, bytes_of(greeting), deadline) != Transfer::done) {
    return TokenAnswer::broken;
  }
  if (greeting.magic != proof.magic) return TokenAnswer::stranger;
  const ClientHello hello = make_hello(greeting, proof.token, proof.number);
  ServerHello answer;
  if (send_all(socket, bytes_of(hello), deadline) != Transfer::done ||
      receive_all(socket, bytes_of(answer), deadline) != Transfer::done) {
    return TokenAnswer::broken;
  }
  const Digest expected = proof_of(Role::server, proof.token, greeting, hello);
  const bool accepted = answer.accepted == 1 && equal_in_constant_time(answer.proof, expected);
  return accepted ? TokenAnswer::accepted : TokenAnswer::other_token;
}

}  // namespace dstrain
