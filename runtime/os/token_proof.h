#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/deadline.h"
#include "runtime/base/sha256.h"

/// How two ends of a connection prove to each other that they know a job's token. The server greets
/// with a nonce; the client answers with a nonce of its own, its number and its proof; the server
/// answers with one byte and its own proof. A proof is the HMAC, keyed with the token, of the
/// speaker's role and of all that was said before: the token never crosses the wire, an overheard
/// proof is of no use again or elsewhere, and a client trusts no server that lacks the token.
/// token_listener.h is the server's side.
namespace dstrain {

using Magic = std::array<char, 8>;  ///< what is spoken behind the proof
using Nonce = std::array<std::uint8_t, 32>;

struct Greeting {
  Magic magic{};
  Nonce nonce{};
};

struct ClientHello {
  Nonce nonce{};
  std::uint32_t number = 0;  ///< who the client is among those that share the token
  Digest proof{};
};

struct ServerHello {
  std::uint8_t accepted = 0;
  Digest proof{};
};
static_assert(sizeof(Greeting) == 40 && sizeof(ClientHello) == 68 && sizeof(ServerHello) == 33);

/// The client's answer to `greeting`, with a fresh nonce.
ClientHello make_hello(const Greeting& greeting, std::string_view token, std::uint32_t number);

/// The server's answer to `hello`, which it had greeted with `greeting`.
ServerHello answer_hello(const Greeting& greeting,
                         std::string_view token,
                         const ClientHello& hello);

struct TokenProof {
  Magic magic;
  std::string_view token;
  std::uint32_t number = 0;
};

enum class TokenAnswer {
  accepted,
  broken,       ///< the connection broke, or time ran out
  stranger,     ///< it does not greet with this magic
  other_token,  ///< it has another token, or lies about having this one
};

/// The client's side, on a connected non-blocking socket.
TokenAnswer prove_token(int socket, const TokenProof& proof, Deadline& deadline);

}  // namespace dstrain
