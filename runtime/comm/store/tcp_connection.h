#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/unique_fd.h"
#include "runtime/comm/store/protocol.h"

namespace dstrain::comm {

/// The server's side of one connection: buffers and the handshake. The token must outlive it.
class TcpConnection {
 public:
  enum class Health { good, closed, wrong_token, malformed };

  /// Greets. `handshake` is when it must have proved the token.
  TcpConnection(UniqueFd socket, const std::string& token, Deadline handshake);

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  [[nodiscard]] bool trusted() const noexcept { return trusted_; }
  [[nodiscard]] bool overdue() const { return !trusted_ && handshake_.passed(); }
  [[nodiscard]] bool has_output() const noexcept { return !output_.empty(); }

  /// Takes in what has arrived, at most `frame_bytes_max` at a time.
  Health read_available();
  /// The next complete request; nothing when there is none yet. `malformed` when it is none.
  std::optional<StoreRequest> next_request(Health& health);
  void answer(std::string_view payload);
  /// Sends as much as the socket takes.
  Health write_available();

  /// The key that this connection waits for; empty: none.
  std::string awaited;

 private:
  Health check_hello();
  void queue(std::span<const std::uint8_t> bytes);

  UniqueFd socket_;
  const std::string* token_;
  Deadline handshake_;
  Nonce nonce_;
  bool trusted_ = false;
  std::vector<std::uint8_t> input_;
  std::vector<std::uint8_t> output_;
};

}  // namespace dstrain::comm
