#include "launcher/agent/rank_channel.h"

#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "launcher/process/pipes.h"
#include "runtime/rank/rank_control.h"

namespace dstrain::launcher {
namespace {

constexpr int messages_at_once = 1000;  // a rank that sends without end does not hold up the others
constexpr std::size_t answers_max = 16;

}  // namespace

UniqueFd RankChannel::open() {
  SocketPair pair = make_socket_pair(SOCK_SEQPACKET);
  socket_ = std::move(pair.ours);
  return std::move(pair.theirs);
}

void RankChannel::receive() {
  std::array<char, control_message_bytes_max> buffer;
  for (int i = 0; i < messages_at_once && socket_; ++i) {
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return socket_.reset();
    const std::string_view message(buffer.data(), static_cast<std::size_t>(got));
    if (decode_progress(message)) {
      progress_ = message;
    } else if ((decode_save_answer(message) || decode_awaited(message) ||
                decode_unreachable(message) || decode_input_request(message)) &&
               answers_.size() < answers_max) {
      answers_.emplace_back(message);
    }
  }
}

std::vector<std::string> RankChannel::take(Which which) {
  std::vector<std::string> messages = std::exchange(answers_, {});
  if (which == Which::all && has_progress()) messages.push_back(std::exchange(progress_, {}));
  return messages;
}

void RankChannel::send(std::string_view message) const {
  if (!socket_) return;
  while (::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
         errno == EINTR) {
  }
}

}  // namespace dstrain::launcher
