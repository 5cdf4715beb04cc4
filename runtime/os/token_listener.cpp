#include "runtime/os/token_listener.h"

#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "runtime/base/log.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"
#include "runtime/os/tcp_peer.h"

namespace dstrain {
namespace {

/// How long to pause accepting when no connection can be accepted: it would wake the poll at once.
constexpr double rest_seconds = 0.1;

/// Returns true if the socket takes all bytes at once, as a fresh one does.
bool send_at_once(int socket, std::span<const std::uint8_t> bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace

void TokenListener::add_polls(std::vector<pollfd>& fds) {
  if (rest_ && rest_->passed()) rest_.reset();
  fds.push_back({rest_ ? -1 : settings_.listener.get(), POLLIN, 0});
  for (const Unproved& unproved : unproved_) fds.push_back({unproved.socket.get(), POLLIN, 0});
}

int TokenListener::poll_ms() const {
  if (rest_) return rest_->at_most(settings_.proof_seconds).remaining_ms();
  return unproved_.empty() ? -1 : unproved_.front().deadline.remaining_ms();
}

void TokenListener::accept_all() {
  while (true) {
    UniqueFd socket(
        ::accept4(settings_.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return after_failed_accept(errno);
    if (unproved_.size() >= settings_.unproved_max) drop_oldest();
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const Greeting greeting{.magic = settings_.magic, .nonce = random_bytes<sizeof(Nonce)>()};
    if (!send_at_once(socket.get(), bytes_of(greeting))) continue;
    unproved_.push_back(
        {std::move(socket), greeting, Deadline::after(settings_.proof_seconds), 0, {}});
  }
}

/// Without a free descriptor or memory, drops a stranger, or pauses accepting.
void TokenListener::after_failed_accept(int error) {
  const bool none_free = error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
  if (none_free && !drop_oldest()) rest_ = Deadline::after(rest_seconds);
}

bool TokenListener::drop_oldest() {
  if (unproved_.empty()) return false;
  unproved_.pop_front();
  return true;
}

/// Reads no byte beyond the proof: the rest belongs to the later owner of the socket.
TokenListener::Next TokenListener::read(Unproved& unproved) {
  const std::span<std::uint8_t> missing = bytes_of(unproved.hello).subspan(unproved.heard);
  const ssize_t got = ::recv(unproved.socket.get(), missing.data(), missing.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Next::wait;
  if (got <= 0) return Next::drop;
  unproved.heard += static_cast<std::size_t>(got);
  return unproved.heard == sizeof(ClientHello) ? check(unproved) : Next::wait;
}

TokenListener::Next TokenListener::check(const Unproved& unproved) {
  const bool stranger = settings_.own_user_only && !is_own_tcp_peer(unproved.socket.get());
  const ServerHello answer =
      stranger ? ServerHello{} : answer_hello(unproved.greeting, settings_.token, unproved.hello);
  const bool sent = send_at_once(unproved.socket.get(), bytes_of(answer));
  if (answer.accepted == 1) return sent ? Next::let_in : Next::drop;
  warn_once(stranger ? "of another user" : "with a wrong token");
  return Next::drop;
}

/// Warns once per kind, so that a stranger cannot fill the log.
void TokenListener::warn_once(std::string_view kind) {
  if (std::exchange(warned_, true)) return;
  log_warning(
      fmt::format("{}: a connection {} was refused; later ones silently", settings_.name, kind));
}

std::vector<TokenListener::Client> TokenListener::advance(std::span<const pollfd> fds) {
  std::vector<Client> clients;
  std::size_t entry = 1;
  for (auto at = unproved_.begin(); at != unproved_.end(); ++entry) {
    const auto unproved = at++;
    const Next next = fds[entry].revents != 0 ? read(*unproved) : Next::wait;
    if (next == Next::wait && !unproved->deadline.passed()) continue;
    if (next == Next::let_in) {
      clients.push_back({unproved->hello.number, std::move(unproved->socket)});
    }
    unproved_.erase(unproved);
  }
  if (fds[0].revents != 0) accept_all();
  return clients;
}

void TokenListener::close() {
  unproved_.clear();
  settings_.listener.reset();
}

}  // namespace dstrain
