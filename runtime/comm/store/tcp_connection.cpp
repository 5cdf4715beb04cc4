#include "runtime/comm/store/tcp_connection.h"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

#include "runtime/base/random_bytes.h"
#include "runtime/comm/bytes.h"

namespace dstrain::comm {
namespace {

/// (vector::insert of a span of bytes draws a false warning from GCC 12.)
void append(std::vector<std::uint8_t>& to, std::span<const std::uint8_t> bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes.size());
  std::copy(bytes.begin(), bytes.end(), to.data() + before);
}

}  // namespace

TcpConnection::TcpConnection(UniqueFd socket, const std::string& token, Deadline handshake)
    : socket_(std::move(socket)),
      token_(&token),
      handshake_(handshake),
      nonce_(random_bytes<sizeof(Nonce)>()) {
  const Greeting greeting{.nonce = nonce_};
  queue(bytes_of(greeting));
}

TcpConnection::Health TcpConnection::read_available() {
  // One read a turn: a talkative peer does not keep the others waiting.
  std::array<std::uint8_t, 64 * 1024> chunk;
  const std::size_t room = trusted_ ? chunk.size() : sizeof(ClientHello) - input_.size();
  const ssize_t got = ::recv(socket_.get(), chunk.data(), room, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Health::good : Health::closed;
  if (got == 0) return Health::closed;
  append(input_, std::span(chunk).first(static_cast<std::size_t>(got)));
  if (!trusted_ && input_.size() == sizeof(ClientHello)) return check_hello();
  return Health::good;
}

TcpConnection::Health TcpConnection::check_hello() {
  ClientHello hello;
  std::ranges::copy(input_, bytes_of(hello).begin());
  input_.clear();
  ServerHello answer;
  trusted_ =
      equal_in_constant_time(hello.proof, proof_of(Role::client, *token_, nonce_, hello.nonce));
  if (trusted_) {
    answer = {1, proof_of(Role::server, *token_, nonce_, hello.nonce)};
  }
  queue(bytes_of(answer));
  return trusted_ ? Health::good : Health::wrong_token;
}

std::optional<StoreRequest> TcpConnection::next_request(Health& health) {
  if (!trusted_ || input_.size() < 4) return std::nullopt;
  const std::span<const std::uint8_t> input(input_);
  const std::uint32_t length = decode_length(input.first<4>());
  if (length > frame_bytes_max) {
    health = Health::malformed;
    return std::nullopt;
  }
  if (input.size() < 4 + std::size_t{length}) return std::nullopt;
  std::optional<StoreRequest> request = decode_request(input.subspan(4, length));
  if (!request) health = Health::malformed;
  input_.erase(input_.begin(), input_.begin() + 4 + std::ptrdiff_t{length});
  return request;
}

void TcpConnection::answer(std::string_view payload) {
  queue(encode_frame(payload));
}

void TcpConnection::queue(std::span<const std::uint8_t> bytes) {
  append(output_, bytes);
}

TcpConnection::Health TcpConnection::write_available() {
  if (output_.empty()) return Health::good;
  const ssize_t sent = ::send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR ? Health::good : Health::closed;
  output_.erase(output_.begin(), output_.begin() + sent);
  return Health::good;
}

}  // namespace dstrain::comm
