#include "launcher/job/input_relay.h"

#include <array>
#include <cerrno>

#include <unistd.h>

#include "runtime/rank/rank_control.h"

namespace dstrain::launcher {

void InputRelay::asked(std::uint32_t number) {
  number_ = number;
  state_ = State::waits;
}

std::optional<std::string> InputRelay::read() {
  if (state_ != State::waits) return std::nullopt;
  std::array<char, input_bytes_max> piece;
  const ssize_t got = ::read(fd_, piece.data(), piece.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
  state_ = State::busy;
  // A stdin that cannot be read has nothing to say.
  if (got <= 0) return encode_input({.request = number_, .ended = true});
  return encode_input({.request = number_, .text{piece.data(), static_cast<std::size_t>(got)}});
}

std::optional<std::string> InputRelay::interrupt() {
  if (state_ != State::busy) return std::nullopt;
  state_ = State::interrupted;
  return encode_interrupt(number_);
}

}  // namespace dstrain::launcher
