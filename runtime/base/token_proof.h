#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/deadline.h"
#include "runtime/base/sha256.h"

/// How two ends of a connection prove to each other that they know a job's token. The server greets
/// with a nonce; the client answers with a nonce of its own and its proof; the server answers with
/// one byte and its own proof. A proof is the HMAC, keyed with the token, of the speaker's role and
/// both nonces: the token never crosses the wire, an overheard proof is of no use again, and a
/// client trusts no server that lacks the token.
namespace dstrain {

using Magic = std::array<char, 8>;  ///< what is spoken behind the proof
using Nonce = std::array<std::uint8_t, 32>;

struct Greeting {
  Magic magic{};
  Nonce nonce{};
};

struct ClientHello {
  Nonce nonce{};
  Digest proof{};
};

struct ServerHello {
  std::uint8_t accepted = 0;
  Digest proof{};
};
static_assert(sizeof(Greeting) == 40 && sizeof(ClientHello) == 64 && sizeof(ServerHello) == 33);

enum class Role : std::uint8_t { client = 'c', server = 's' };

Digest proof_of(Role role, std::string_view token, const Nonce& server, const Nonce& client);

/// The server's answer to a client that it greeted with `nonce`.
ServerHello answer_hello(const ClientHello& hello, std::string_view token, const Nonce& nonce);

struct TokenProof {
  Magic magic;
  std::string_view token;
};

enum class TokenAnswer {
  accepted,
  broken,       ///< the connection broke, or time ran out
  stranger,     ///< it does not greet with this magic
  other_token,  ///< it has another token, or lies about having this one
};

/// The client's side, on a connected non-blocking socket.
TokenAnswer prove_token(int socket, const TokenProof& proof, Deadline deadline);

}  // namespace dstrain
