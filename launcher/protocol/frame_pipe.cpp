#include "launcher/protocol/frame_pipe.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <unistd.h>

#include "launcher/process/pipes.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t noise_bytes_max = 1U << 20;

}  // namespace

std::string PreambleFilter::pass(std::string_view bytes) {
  if (found_) return std::string(bytes);
  const std::size_t seen = noise_.size();
  noise_ += bytes;
  const std::size_t at = noise_.find(agent_preamble, seen - std::min(seen, agent_preamble.size()));
  if (at == std::string::npos) {
    if (noise_.size() <= noise_bytes_max) return "";
    fail(ErrorCode::remote,
         "printed more than {} KiB before the agent's first message; check what its shell startup "
         "files print",
         noise_bytes_max >> 10);
  }
  found_ = true;
  std::string rest = noise_.substr(at + agent_preamble.size());
  noise_.resize(at);
  return rest;
}

FramePipe::FramePipe(Ends ends, Begin begin) : ends_(ends), begin_(begin) {
  make_non_blocking(ends.read_fd);
  make_non_blocking(ends.write_fd);
}

bool FramePipe::flush() {
  while (pending_bytes() > 0) {
    const ssize_t written = write(ends_.write_fd, queue_.data() + position_, pending_bytes());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) return false;
    position_ += static_cast<std::size_t>(written);
  }
  queue_.erase(0, position_);
  position_ = 0;
  return true;
}

bool FramePipe::receive() {
  std::array<char, 64U << 10> buffer;
  for (int reads = 0; reads < 16; ++reads) {
    const ssize_t got = read(ends_.read_fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    begin_ == Begin::at_once ? reader_.feed(bytes) : reader_.feed(preamble_.pass(bytes));
    if (bytes.size() < buffer.size()) return true;
  }
  return true;
}

}  // namespace dstrain::launcher
