#include "launcher/hosts/relay.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "launcher/hosts/relay_process.h"
#include "launcher/process/fd_pair.h"
#include "launcher/protocol/frame_pipe.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr int relay_poll_milliseconds = 5;
constexpr int relay_polls_max = 1200;  // six seconds: twice what the relay itself waits

class RelayedLink final : public AgentLink {
 public:
  RelayedLink(Relay& relay, std::size_t index, UniqueFd fd)
      : relay_(relay), index_(index), fd_(std::move(fd)) {}
  [[nodiscard]] int read_fd() const override { return fd_.get(); }
  [[nodiscard]] int write_fd() const override { return fd_.get(); }
  std::string end_reason() override { return relay_.end_reason(index_); }
  void abandon() override { shutdown(fd_.get(), SHUT_RDWR); }

 private:
  Relay& relay_;
  std::size_t index_;
  UniqueFd fd_;
};

}  // namespace

Relay::Relay(const Settings& settings) {
  std::vector<UniqueFd> theirs;
  for (std::size_t i = 0; i < settings.hosts.size(); ++i) {
    SocketPair pair = make_socket_pair(SOCK_STREAM);
    ends_.push_back(std::move(pair.ours));
    theirs.push_back(std::move(pair.theirs));
  }
  SocketPair events = make_socket_pair(SOCK_SEQPACKET);
  pid_ = fork();
  if (pid_ < 0) fail_errno(errno, "fork");
  if (pid_ == 0) {
    ends_.clear();
    events.ours.reset();
    run_relay_process(settings, std::move(theirs), events.theirs.get());
  }
  events_ = std::move(events.ours);
  make_non_blocking(events_.get());
}

Relay::~Relay() {
  ends_.clear();
  events_.reset();
  for (int polls = 0; waitpid(pid_, nullptr, WNOHANG) == 0; ++polls) {
    if (polls == relay_polls_max) kill(pid_, SIGKILL);
    poll(nullptr, 0, relay_poll_milliseconds);
  }
}

std::unique_ptr<AgentLink> Relay::take_link(std::size_t index) {
  return std::make_unique<RelayedLink>(*this, index, std::move(ends_.at(index)));
}

std::string Relay::end_reason(std::size_t index) {
  std::array<char, 4096> packet;
  for (;;) {
    const ssize_t got = recv(events_.get(), packet.data(), packet.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(sizeof index)) break;
    std::size_t about = 0;
    std::memcpy(&about, packet.data(), sizeof about);
    reasons_[about].assign(packet.data() + sizeof about,
                           static_cast<std::size_t>(got) - sizeof about);
  }
  const auto found = reasons_.find(index);
  return found != reasons_.end() ? found->second : "the process that held the connection is gone";
}

}  // namespace dstrain::launcher
