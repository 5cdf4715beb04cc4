#include "launcher/hosts/relay.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/hosts/relay_channel.h"
#include "launcher/process/children.h"
#include "launcher/process/pipes.h"
#include "launcher/process/signals.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/clock.h"
#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

constexpr double client_grace_seconds = 3;   // for clients to end by themselves
constexpr double starter_grace_seconds = 3;  // for agents to end after what started them
constexpr std::size_t packet_text_max = 4096;
// In place of a host's index:
constexpr std::size_t about_starter_output = ~std::size_t{0};
constexpr std::size_t about_starter_kill = ~std::size_t{1};
constexpr int relay_grace_milliseconds = 6000;  // twice what the relay itself waits

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

/// Closes every descriptor above the standard ones that is not in `kept`.
void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > next) close_range(next, number - 1, 0);
    next = number + 1;
  }
  close_range(next, ~0U, 0);
}

/// Detaches from the launcher: stop signals are for the launcher, whose connections this process
/// keeps meanwhile, and the launcher's files must not stay open here.
void detach(const std::vector<UniqueFd>& launcher_ends, int events_fd) {
  std::vector<int> kept{events_fd};
  for (const UniqueFd& fd : launcher_ends) kept.push_back(fd.get());
  close_all_but(std::move(kept));
  setsid();
  prctl(PR_SET_NAME, "dstrain-relay");
  ignore_broken_pipes();
  sigset_t blocked;  // not ignored: started programs would inherit that
  sigemptyset(&blocked);
  for (const int signal : stop_signals) sigaddset(&blocked, signal);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  const UniqueFd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null_fd.get(), fd);
}

class RelayProcess {
 public:
  RelayProcess(const Relay::Settings& settings, std::vector<UniqueFd> launcher_ends, int events_fd);
  void run();

 private:
  void poll_once();
  void open_all(const Relay::Settings& settings);
  void close_channel(std::size_t index);
  void advance_tasks(std::span<const pollfd> fds);
  void pass_on_starter_output();
  void tell_starter_kill();
  void starter_ended();
  void await_starter_end();
  void tell(std::size_t index, const std::string& text, int flags) const;

  SteadyClock clock_;
  double beat_seconds_;
  int events_;
  std::optional<TaskLinks> tasks_;  ///< outlives the links in the channels
  std::size_t missing_agents_ = 0;
  std::string starter_output_;
  bool told_starter_kill_ = false;
  std::optional<Deadline> starter_deadline_;  ///< set when it has ended
  std::vector<std::optional<RelayChannel>> channels_;
};

RelayProcess::RelayProcess(const Relay::Settings& settings,
                           std::vector<UniqueFd> launcher_ends,
                           int events_fd)
    : beat_seconds_(settings.silence_seconds / beats_per_silence), events_(events_fd) {
  for (UniqueFd& end : launcher_ends) {
    channels_.emplace_back(std::in_place, std::move(end), settings.silence_seconds);
  }
  if (!settings.tasks) {
    open_all(settings);
    return;
  }
  missing_agents_ = channels_.size();
  try {
    tasks_.emplace(*settings.tasks, static_cast<int>(channels_.size()));
  } catch (const Error& error) {
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      channels_[i]->give_up(error.what());
      close_channel(i);
    }
  }
}

void RelayProcess::open_all(const Relay::Settings& settings) {
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    try {
      channels_[i]->open(settings.open(settings.hosts[i]), clock_.now_seconds());
    } catch (const Error& error) {
      channels_[i]->give_up(error.what());
      close_channel(i);
    }
  }
}

/// May fail: then the launcher is gone and needs no answer.
void RelayProcess::tell(std::size_t index, const std::string& text, int flags) const {
  std::string packet(reinterpret_cast<const char*>(&index), sizeof index);
  packet += text.substr(0, packet_text_max);
  (void)!send(events_, packet.data(), packet.size(), MSG_NOSIGNAL | flags);
}

/// Sends the reason before the launcher sees the end; waits if the launcher is behind.
void RelayProcess::close_channel(std::size_t index) {
  tell(index, channels_[index]->take_end_reason(), 0);
  channels_[index].reset();
}

/// Gives channels the links of connected agents, and watches the program that starts them.
void RelayProcess::advance_tasks(std::span<const pollfd> fds) {
  for (TaskLinks::Arrival& arrival : tasks_->advance(fds)) {
    auto& channel = channels_.at(static_cast<std::size_t>(arrival.rank));
    if (!channel || channel->has_link()) continue;
    channel->open(std::move(arrival.link), clock_.now_seconds());
    if (--missing_agents_ == 0) tasks_->close_listener();
  }
  if (missing_agents_ > 0) pass_on_starter_output();
  tell_starter_kill();
  if (tasks_->starter().ended()) starter_ended();
}

void RelayProcess::tell_starter_kill() {
  if (told_starter_kill_) return;
  const std::string kill = tasks_->starter().kill_reason();
  told_starter_kill_ = !kill.empty();
  if (told_starter_kill_) tell(about_starter_kill, kill, 0);
}

void RelayProcess::pass_on_starter_output() {
  std::string output = tasks_->starter().output();
  if (output == starter_output_) return;
  tell(about_starter_output, output, MSG_DONTWAIT);
  starter_output_ = std::move(output);
}

/// Ends the channels of agents that have not connected, and after a grace period those of the
/// others.
void RelayProcess::starter_ended() {
  if (!starter_deadline_) starter_deadline_ = Deadline::after(starter_grace_seconds);
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (!channels_[i] || (channels_[i]->has_link() && !starter_deadline_->passed())) continue;
    channels_[i]->give_up(tasks_->starter().end_reason());
    close_channel(i);
  }
}

void RelayProcess::poll_once() {
  std::vector<pollfd> fds;
  for (const auto& channel : channels_) {
    if (channel) channel->add_polls(fds);
  }
  if (tasks_) tasks_->add_polls(fds);
  int timeout = static_cast<int>(beat_seconds_ * 1000 / 2) + 1;
  if (starter_deadline_) timeout = std::min(timeout, starter_deadline_->remaining_ms() + 1);
  int ready = 0;
  const auto wait = [&] {
    ready = poll(fds.data(), fds.size(), timeout);
  };
  if (starter_deadline_) {
    starter_deadline_->slice(timeout / 1000.0, wait);
  } else {
    wait();
  }
  if (ready < 0 && errno != EINTR) fail_errno(errno, "poll");
  std::size_t at = 0;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (!channels_[i]) continue;
    channels_[i]->advance(std::span(fds).subspan(at, RelayChannel::poll_count),
                          clock_.now_seconds());
    at += RelayChannel::poll_count;
    if (channels_[i]->ended()) close_channel(i);
  }
  if (tasks_) advance_tasks(std::span(fds).subspan(at));
}

void RelayProcess::run() {
  const auto is_open = [](const auto& channel) {
    return channel.has_value();
  };
  while (std::any_of(channels_.begin(), channels_.end(), is_open)) poll_once();
  if (!tasks_) return;
  if (missing_agents_ > 0) return tasks_->starter().ask_to_end();
  await_starter_end();
}

/// The kernel closes a killed process's connections, which ends its tasks, before it reports the
/// end. The launcher waits a little longer than this for that.
void RelayProcess::await_starter_end() {
  constexpr double seconds = 0.2;
  const Deadline deadline = Deadline::after(seconds);
  while (!told_starter_kill_ && !tasks_->starter().ended() && !deadline.passed()) {
    std::vector<pollfd> fds;
    tasks_->add_polls(fds);
    if (poll(fds.data(), fds.size(), deadline.remaining_ms()) < 0 && errno != EINTR) {
      fail_errno(errno, "poll");
    }
    tasks_->advance(fds);
    tell_starter_kill();
  }
}

/// Clients end when their connections do; kills those that do not.
void end_clients() {
  const Deadline grace = Deadline::after(client_grace_seconds);
  while (waitpid(-1, nullptr, WNOHANG) >= 0) {
    const std::vector<pid_t> clients = list_children();
    if (clients.empty()) continue;  // the last has just been reaped
    if (grace.passed()) {
      for (const pid_t client : clients) kill(client, SIGKILL);
    }
    wait_for_any_end(clients, grace.passed() ? new_orphans_milliseconds : grace.remaining_ms());
  }
}

/// The body of the relay's process: opens a link to each host, passes bytes both ways between it
/// and the socket of the same index until either ends, and sends on `events_fd` why a link ended,
/// as packets of a std::size_t index and a text. Does not return.
[[noreturn]] void run_relay_process(const Relay::Settings& settings,
                                    std::vector<UniqueFd> launcher_ends,
                                    int events_fd) {
  int result = EXIT_FAILURE;
  try {
    detach(launcher_ends, events_fd);
    RelayProcess(settings, std::move(launcher_ends), events_fd).run();
    result = EXIT_SUCCESS;
  } catch (const std::exception&) {
    // The ends close with the process: the launcher sees that the connections are gone.
  }
  end_clients();
  _exit(result);
}

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
  if (pid_ < 0) fail(ErrorCode::io, "{}", why_no_process(errno));
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGCONT);  // a stopped relay would keep its ends open
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
  if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
  wait_for_any_end({&pid_, 1}, relay_grace_milliseconds);
  if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::unique_ptr<AgentLink> Relay::take_link(std::size_t index) {
  return std::make_unique<RelayedLink>(*this, index, std::move(ends_.at(index)));
}

/// The last text about this index; empty: none.
std::string Relay::event(std::size_t about) const {
  std::array<char, sizeof(std::size_t) + packet_text_max> packet;
  for (;;) {
    const ssize_t got = recv(events_.get(), packet.data(), packet.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    std::size_t told = 0;
    if (got < static_cast<ssize_t>(sizeof told)) break;
    std::memcpy(&told, packet.data(), sizeof told);
    reasons_[told].assign(packet.data() + sizeof told, static_cast<std::size_t>(got) - sizeof told);
  }
  const auto found = reasons_.find(about);
  return found != reasons_.end() ? found->second : "";
}

std::string Relay::starter_output() {
  return event(about_starter_output);
}

std::string Relay::starter_kill(Deadline deadline) const {
  for (;;) {
    const std::size_t told = reasons_.size();
    std::string kill = event(about_starter_kill);
    if (!kill.empty() || !wait_until_ready(events_.get(), POLLIN, deadline)) return kill;
    kill = event(about_starter_kill);
    if (!kill.empty() || reasons_.size() == told) return kill;  // or the relay is gone
  }
}

std::string Relay::end_reason(std::size_t index) {
  const std::string reason = event(index);
  return reason.empty() && reasons_.count(index) == 0
             ? fmt::format(
                   "the local process that held its connection (pid {}) is gone; it may have been "
                   "killed",
                   pid_)
             : reason;
}

}  // namespace dstrain::launcher
