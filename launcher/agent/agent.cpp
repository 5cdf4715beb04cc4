#include "launcher/agent/agent.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/agent/agent_sender.h"
#include "launcher/agent/job_end.h"
#include "launcher/agent/node_ranks.h"
#include "launcher/agent/port.h"
#include "launcher/process/children.h"
#include "launcher/process/process.h"
#include "launcher/process/signals.h"
#include "launcher/protocol/frame_pipe.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/clock.h"
#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/unique_handle.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr int kill_milliseconds = 10;     // between two looks for new orphans while killing
constexpr double guard_seconds_max = 60;  // a process stuck in the kernel does not die

/// SIGCONT comes when the parent ends: the launcher here, or the guard.
std::vector<int> watched_signals() {
  std::vector<int> signals = job_signals();
  signals.push_back(SIGCONT);
  return signals;
}

class Agent {
 public:
  explicit Agent(pid_t parent) : parent_(parent) { become_subreaper(); }
  int run(std::string_view version);

 private:
  void handle(const Frame& frame);
  void start_job(std::string_view payload);
  void pass_on_signal(int number);
  void stop_asked(int signal);
  void tell_stop();
  void reserve(const PortRequest& request);
  void poll_once();
  void receive();
  void take_signals();
  void exchange_beats();
  bool finish();
  int kill_job();
  [[nodiscard]] int poll_milliseconds() const;

  pid_t parent_;
  SteadyClock clock_;
  std::vector<int> watched_ = watched_signals();
  SignalSource signals_{watched_};
  FramePipe launcher_{{STDIN_FILENO, STDOUT_FILENO}};
  AgentSender sender_{launcher_};
  HeartBeat beats_;
  NodeRanks ranks_{sender_, clock_};
  JobEnd end_{ranks_, sender_};
  ReservedPort port_;
  bool launcher_gone_ = false;
  std::optional<int> stop_signal_;  ///< the first that this process received
  bool ranks_asked_ = false;        ///< to stop
  bool answered_ = false;           ///< the launcher itself has asked the ranks to stop
};

void Agent::reserve(const PortRequest& request) {
  try {
    port_ = reserve_port(request);
    sender_.port(port_.port);
  } catch (const Error& error) {
    sender_.no_port(error.what());
  }
}

void Agent::start_job(std::string_view payload) {
  JobSpec job = decode_job(payload);
  if (end_.has_job()) fail(ErrorCode::remote, "agent protocol: received a second job");
  end_.job_begins();
  sender_.set_window(job.output_window_bytes);
  if (!job.command.daemon) port_.listener.reset();  // the program itself listens there
  ranks_.start(std::move(job), signals_.previous_mask(), std::move(port_.listener));
  if (stop_signal_) tell_stop();
}

/// The launcher's first SIGTERM may answer our own request, so the ranks are asked only once.
void Agent::pass_on_signal(int number) {
  if (number == SIGKILL) return end_.kill_all(clock_.now_seconds());
  const bool repeats = number == SIGTERM && !std::exchange(answered_, true) && ranks_asked_;
  ranks_asked_ = true;
  if (!repeats) ranks_.signal(number);
}

/// A signal to all processes of a machine, or of the job, is a request to stop. Only the launcher
/// hurries the stop.
void Agent::stop_asked(int signal) {
  if (stop_signal_) return;
  stop_signal_ = signal;
  if (end_.has_job()) tell_stop();
}

void Agent::tell_stop() {
  sender_.stop(*stop_signal_);
  if (!std::exchange(ranks_asked_, true)) ranks_.signal(SIGTERM);
}

void Agent::handle(const Frame& frame) {
  WireReader in(frame.payload);
  switch (static_cast<ToAgent>(frame.type)) {
    case ToAgent::job:
      return start_job(frame.payload);
    case ToAgent::ack:
      return sender_.acknowledged(in.u32());
    case ToAgent::signal:
      return pass_on_signal(in.i32());
    case ToAgent::rank_message:
      return ranks_.send_to_rank(frame.payload);
    case ToAgent::port:
      return reserve(decode_port_request(frame.payload));
    case ToAgent::stacks:
      return ranks_.take_stacks(in.u32());
    case ToAgent::beat:
      return beats_.agree_on(in.u32() / 1000.0);
  }
  fail(ErrorCode::remote, "agent protocol: unknown frame type {}", frame.type);
}

void Agent::receive() {
  beats_.received(clock_.now_seconds());
  launcher_gone_ |= !launcher_.receive();
  while (const auto frame = launcher_.next()) handle(*frame);
}

void Agent::take_signals() {
  while (const auto signal = signals_.next()) {
    if (signal->number == SIGCHLD) {
      if (signal->pid > 0) ranks_.reap(signal->pid);
    } else if (signal->number == SIGCONT) {
      launcher_gone_ |= getppid() != parent_;
    } else {
      stop_asked(signal->number);
    }
  }
}

/// Sends a beat when it is due, and treats a silent launcher as gone.
void Agent::exchange_beats() {
  const double now = clock_.now_seconds();
  launcher_gone_ |= beats_.is_silent(now);
  if (beats_.take_turn(now)) sender_.beat();
}

int Agent::poll_milliseconds() const {
  if (end_.kills()) return kill_milliseconds;
  double next = std::numeric_limits<double>::infinity();
  for (const auto& deadline : {end_.deadline(), beats_.deadline(), ranks_.deadline()}) {
    next = std::min(next, deadline.value_or(next));
  }
  if (std::isinf(next)) return -1;
  return std::max(0, static_cast<int>((next - clock_.now_seconds()) * 1000) + 1);
}

void Agent::poll_once() {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0},
                          {launcher_.read_fd(), POLLIN, 0},
                          {launcher_.pending_bytes() > 0 ? launcher_.write_fd() : -1, POLLOUT, 0}};
  const std::size_t ranks_at = fds.size();
  ranks_.add_polls(fds);
  if (poll(fds.data(), fds.size(), poll_milliseconds()) < 0 && errno != EINTR) {
    fail_errno(errno, "poll");
  }
  if (fds[0].revents != 0) take_signals();
  ranks_.reap(-1);
  if (fds[1].revents != 0) receive();
  ranks_.read(std::span(fds).subspan(ranks_at));
  launcher_gone_ |= !launcher_.flush();
}

/// Sends the rest; returns false if the launcher goes away meanwhile.
bool Agent::finish() {
  ranks_.finish();
  sender_.finished();
  while (launcher_.flush() && launcher_.pending_bytes() > 0) {
    pollfd one{launcher_.write_fd(), POLLOUT, 0};
    if (poll(&one, 1, -1) < 0 && errno != EINTR) return false;
  }
  return launcher_.pending_bytes() == 0;
}

/// Kills the ranks at once: the launcher is gone.
int Agent::kill_job() {
  end_.kill_all(clock_.now_seconds());
  for (ranks_.reap(-1); ranks_.has_children(); ranks_.reap(-1)) {
    if (end_.is_hopeless(clock_.now_seconds())) break;
    end_.advance(clock_.now_seconds());
    pollfd one{signals_.fd(), POLLIN, 0};
    if (poll(&one, 1, kill_milliseconds) > 0) take_signals();
  }
  return status::failed;
}

int Agent::run(std::string_view version) {
  sender_.hello(version);
  launcher_gone_ = getppid() != parent_;
  try {
    for (;;) {
      poll_once();
      exchange_beats();
      if (launcher_gone_) return kill_job();
      end_.advance(clock_.now_seconds());
      if (end_.reached(clock_.now_seconds())) break;
    }
  } catch (...) {
    kill_job();
    throw;
  }
  return finish() ? status::done : kill_job();
}

/// Makes the kernel wake this process, if it is stopped, when the launcher sends something or the
/// connection ends: nothing else would wake it then.
void wake_on_input() {
  fcntl(STDIN_FILENO, F_SETOWN, getpid());
  fcntl(STDIN_FILENO, F_SETSIG, SIGCONT);
  const int flags = fcntl(STDIN_FILENO, F_GETFL);
  if (flags >= 0) fcntl(STDIN_FILENO, F_SETFL, flags | O_ASYNC);
}

/// Waits for the agent, which alone keeps the connection; returns its wait status. Continues a
/// stopped agent at once, because it could not end its ranks. Passes stop signals on to the agent.
int wait_for_agent(pid_t agent, SignalSource& signals) {
  const UniqueFd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(null_fd.get(), STDIN_FILENO);
  dup2(null_fd.get(), STDOUT_FILENO);
  for (;;) {
    int wait_status = 0;
    const pid_t pid = waitpid(agent, &wait_status, WUNTRACED | WNOHANG);
    if (pid < 0 && errno != EINTR) fail_errno(errno, "wait for the agent");
    if (pid == agent && !WIFSTOPPED(wait_status)) return wait_status;
    if (pid == agent) kill(agent, SIGCONT);
    pollfd one{signals.fd(), POLLIN, 0};
    poll(&one, 1, -1);
    while (const auto signal = signals.next()) {
      if (signal->number != SIGCHLD) kill(agent, signal->number);
    }
  }
}

void end_leftovers() {
  const Deadline deadline = Deadline::after(guard_seconds_max);
  for (;;) {
    pid_t reaped = 0;
    do {
      reaped = waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0);
    if ((reaped < 0 && errno == ECHILD) || deadline.passed()) return;
    const std::vector<pid_t> children = list_children();
    for (const pid_t child : children) kill(child, SIGKILL);
    wait_for_any_end(children, new_orphans_milliseconds);
  }
}

}  // namespace

int run_agent(std::string_view version) {
  ignore_broken_pipes();
  return Agent(getppid()).run(version);
}

int run_guarded_agent(std::string_view version) {
  become_subreaper();
  set_stop_signals(SIG_DFL);  // a client of --ssh_command that ignores them hands that down
  wake_on_input();
  std::optional<SignalSource> signals(job_signals());
  const pid_t guard = getpid();
  const pid_t agent = fork();
  if (agent < 0) fail(ErrorCode::io, "{}", why_no_process(errno));
  if (agent == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGCONT) != 0)
      fail_errno(errno, "ask for a signal when the parent ends");
    signals.reset();
    ignore_broken_pipes();
    const int result = Agent(guard).run(version);
    kill(guard, SIGCONT);
    return result;
  }
  const int wait_status = wait_for_agent(agent, *signals);
  end_leftovers();
  return shell_status(wait_status);
}

}  // namespace dstrain::launcher
