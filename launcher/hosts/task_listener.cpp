#include "launcher/hosts/task_listener.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "launcher/protocol/protocol.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/socket.h"

namespace dstrain::launcher {
namespace {

constexpr double proof_seconds_max = 10;
constexpr std::size_t extra_strangers_max = 128;  // beside one connection per rank
constexpr std::size_t rank_bytes = 4;

/// True when the socket takes all of it at once, as a fresh one does.
bool send_at_once(int socket, std::span<const std::uint8_t> bytes) {
  return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace

void TaskListener::add_polls(std::vector<pollfd>& fds) const {
  fds.push_back({settings_.listener.get(), POLLIN, 0});
  for (const Stranger& stranger : strangers_) fds.push_back({stranger.socket.get(), POLLIN, 0});
}

void TaskListener::accept_all() {
  for (;;) {
    UniqueFd socket(
        accept4(settings_.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    const auto room = static_cast<std::size_t>(settings_.ranks) + extra_strangers_max;
    if (strangers_.size() >= room) strangers_.pop_front();
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Stranger stranger{std::move(socket), random_bytes<sizeof(Nonce)>(),
                      Deadline::after(proof_seconds_max), "", false};
    const Greeting greeting{.magic = agents_magic, .nonce = stranger.nonce};
    if (send_at_once(stranger.socket.get(), bytes_of(greeting))) {
      strangers_.push_back(std::move(stranger));
    }
  }
}

TaskListener::Next TaskListener::check_hello(Stranger& stranger) const {
  ClientHello hello;
  std::memcpy(&hello, stranger.said.data(), sizeof hello);
  stranger.said.clear();
  const ServerHello answer = answer_hello(hello, settings_.secret, stranger.nonce);
  stranger.proved = answer.accepted == 1;
  const bool sent = send_at_once(stranger.socket.get(), bytes_of(answer));
  return sent && stranger.proved ? Next::wait : Next::drop;
}

/// No byte more than belongs to the proof: what follows is the agent's.
TaskListener::Next TaskListener::read(Stranger& stranger) {
  std::array<char, sizeof(ClientHello)> part;
  const std::size_t whole = stranger.proved ? rank_bytes : sizeof(ClientHello);
  const ssize_t got = recv(stranger.socket.get(), part.data(), whole - stranger.said.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Next::wait;
  if (got <= 0) return Next::drop;
  stranger.said.append(part.data(), static_cast<std::size_t>(got));
  if (stranger.said.size() < whole) return Next::wait;
  return stranger.proved ? Next::arrive : check_hello(stranger);
}

std::vector<TaskListener::Arrival> TaskListener::advance(std::span<const pollfd> fds) {
  std::vector<Arrival> arrivals;
  std::size_t entry = 1;
  for (auto at = strangers_.begin(); at != strangers_.end(); ++entry) {
    const auto stranger = at++;
    const Next next = fds[entry].revents != 0 ? read(*stranger) : Next::wait;
    if (next == Next::wait && !stranger->deadline.passed()) continue;
    if (next == Next::arrive) {
      const std::uint32_t rank = WireReader(stranger->said).u32();
      if (rank < static_cast<std::uint32_t>(settings_.ranks)) {
        arrivals.push_back({static_cast<int>(rank), std::move(stranger->socket)});
      }
    }
    strangers_.erase(stranger);
  }
  if (fds[0].revents != 0) accept_all();
  return arrivals;
}

void TaskListener::close() {
  strangers_.clear();
  settings_.listener.reset();
}

}  // namespace dstrain::launcher
