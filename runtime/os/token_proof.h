#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/deadline.h"
#include "runtime/base/sha256.h"

/// Two ends of a connection prove to each other that they know a job's token. The server greets
/// with a nonce; the client answers with its own nonce, its number and its proof; the server
/// answers with one byte and its own proof. A proof is the HMAC, keyed with the token, of the
/// speaker's role and of all earlier messages. The token is never sent, an overheard proof cannot
/// be reused, and a client does not trust a server that lacks the token. token_listener.h is the
/// server's side.
namespace dstrain {

using Magic = std::array<char, 8>;  ///< names the protocol after the proof
using Nonce = std::array<std::uint8_t, 32>;

struct Greeting {
  Magic magic{};
  Nonce nonce{};
};

struct ClientHello {
  Nonce nonce{};
  std::uint32_t number = 0;  ///< identifies the client among those that share the token
  Digest proof{};
};

struct ServerHello {
  std::uint8_t accepted = 0;
  Digest proof{};
};
static_assert(sizeof(Greeting) == 40 && sizeof(ClientHello) == 68 && sizeof(ServerHello) == 33);

/// Returns the client's answer to `greeting`, with a fresh nonce.
ClientHello make_hello(const Greeting& greeting, std::string_view token, std::uint32_t number);

/// Returns the server's answer to `hello`, which replied to `greeting`.
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
  broken,       ///< the connection broke, or the deadline passed
  stranger,     ///< the greeting does not have this magic
  other_token,  ///< it has another token, or pretends to have this one
};

/// Runs the client's side, on a connected non-blocking socket.
TokenAnswer prove_token(int socket, const TokenProof& proof, Deadline& deadline);

}  // namespace dstrain
