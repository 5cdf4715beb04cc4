#include "launcher/doctor/reach.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <span>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/deadline.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr double reach_seconds = 2;
constexpr std::size_t threads_max = 64;

/// Why the peer is not reached; empty if it is.
std::string try_peer(const Peer& peer) {
  Deadline deadline = Deadline::after(reach_seconds);
  const Result<UniqueFd> socket = connect_tcp({peer.address, peer.port}, deadline);
  if (!socket.ok()) return socket.error();
  std::vector<std::uint8_t> nonce(peer.nonce.size());
  const Transfer got = receive_all(socket.value().get(), nonce, deadline);
  const bool same = std::equal(nonce.begin(), nonce.end(), peer.nonce.begin(), peer.nonce.end());
  if (got == Transfer::done && same) return "";
  return got == Transfer::timed_out ? "connected, but no data arrives"
                                    : "another machine or program answers there";
}

}  // namespace

Listener::Listener(const std::string& address, const std::optional<PortRange>& ports)
    : stop_(::eventfd(0, EFD_CLOEXEC)), nonce_(to_hex(random_bytes<16>())) {
  Result<UniqueFd> socket = listen_within(address, ports);
  if (!socket.ok()) {
    failure_ = socket.error();
    return;
  }
  socket_ = std::move(socket.value());
  port_ = bound_port(socket_.get());
  thread_ = std::thread([this] { serve(); });
}

Listener::~Listener() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Listener::serve() const {
  for (;;) {
    std::array<pollfd, 2> fds{{{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    const UniqueFd peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    // A new connection has room for these few bytes. A failure means that the peer is gone.
    if (peer) ::send(peer.get(), nonce_.data(), nonce_.size(), MSG_NOSIGNAL);
  }
}

std::vector<Unreached> reach_all(const std::vector<Peer>& peers) {
  std::vector<Unreached> unreached;
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < peers.size(); i = next++) {
      std::string reason = try_peer(peers[i]);
      if (reason.empty()) continue;
      const std::scoped_lock lock(mutex);
      unreached.push_back({peers[i].host, std::move(reason)});
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(peers.size(), threads_max); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return unreached;
}

}  // namespace dstrain::launcher::doctor
