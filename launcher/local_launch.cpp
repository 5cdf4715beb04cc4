#include "launcher/local_launch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include "launcher/children.h"
#include "launcher/failure_report.h"
#include "launcher/frame_pipe.h"
#include "launcher/job_children.h"
#include "launcher/job_server.h"
#include "launcher/log_mux.h"
#include "launcher/process.h"
#include "launcher/signals.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t queued_output_max = 1U << 20;
constexpr double sweep_seconds_max = 10;
constexpr int sweep_poll_milliseconds = 5;
constexpr double last_output_seconds = 5;  // for a reader that has stalled, once asked to stop
constexpr std::array<std::string_view, 5> levels{"debug", "info", "warning", "error", "critical"};

/// The signals to take over. SIGHUP that is ignored (nohup) stays ignored.
std::vector<int> signals_to_watch() {
  std::vector<int> signals{SIGCHLD, SIGINT, SIGTERM, SIGUSR1};
  struct sigaction action {};
  const bool known = sigaction(SIGHUP, nullptr, &action) == 0;
  if (!known || action.sa_handler != SIG_IGN) signals.push_back(SIGHUP);
  return signals;
}

struct PipeEnds {
  UniqueFd read;
  UniqueFd write;
};

PipeEnds make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) fail_errno(errno, "make a pipe");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

/// The agent as a child process, and the pipes to it.
struct AgentProcess {
  UniqueFd to_agent;
  UniqueFd from_agent;
  pid_t pid = 0;
};

AgentProcess start_agent(const sigset_t& signal_mask) {
  PipeEnds input = make_pipe();
  PipeEnds output = make_pipe();
  ProcessSpec spec;
  spec.program = own_path();
  spec.argv = {"dstrain", "agent"};
  spec.stdin_fd = input.read.get();
  spec.stdout_fd = output.write.get();
  spec.new_session = true;  // a Ctrl-C of the terminal is for the launcher alone
  spec.signal_mask = signal_mask;
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) fail(ErrorCode::remote, "cannot start the agent: {}", pid.error());
  return {std::move(input.write), std::move(output.read), pid.value()};
}

JobStatus initial_status(const LocalJob& job, double now_seconds) {
  JobStatus status{.id = job.id,
                   .program = job.program,
                   .output_directory = job.output_directory,
                   .start = std::time(nullptr),
                   .started_at_seconds = now_seconds,
                   .ranks = {}};
  for (std::size_t i = 0; i < job.spec.ranks.size(); ++i) {
    RankStatus& rank = status.ranks[job.spec.ranks[i].rank];
    rank.host = job.host;
    if (!job.spec.log_files.empty()) rank.log_file = job.spec.log_files[i];
  }
  return status;
}

class LocalLaunch {
 public:
  explicit LocalLaunch(const LocalJob& job);
  int run();

 private:
  void poll_once();
  void take_signals();
  void handle(const Frame& frame);
  void handle_exit(const Exit& exit);
  void handle_message(const RankMessage& message);
  void stop(int signal);
  void serve(std::span<const pollfd> fds);
  void obey(Order order);
  void child_ended(pid_t pid, int wait_status);
  void acknowledge();
  void sweep();
  void report();
  void flush_output();
  void say(std::string_view level, const std::string& text);
  int check_rank(int rank) const;
  [[nodiscard]] int poll_milliseconds() const;

  const LocalJob& job_;
  SteadyClock clock_;
  std::vector<int> watched_ = signals_to_watch();
  SignalSource signals_{watched_};
  JobChildren children_;
  OutputSink out_{STDOUT_FILENO};
  OutputSink err_{STDERR_FILENO};
  LogMux mux_;
  Supervisor supervisor_;
  AgentProcess agent_;
  FramePipe pipe_;
  JobStatus status_;
  JobServer server_;
  std::optional<int> agent_status_;
  std::string launch_failure_;
  std::size_t owed_acks_ = 0;
  bool agent_open_ = true;
  bool finished_ = false;
};

LocalLaunch::LocalLaunch(const LocalJob& job)
    : job_(job),
      children_(job.id),
      mux_(job.supervision.world_size,
           out_,
           err_,
           job.bare_output ? LogMux::Prefixes::bare : LogMux::Prefixes::all),
      supervisor_(job.supervision),
      agent_(start_agent(signals_.previous_mask())),
      pipe_({agent_.from_agent.get(), agent_.to_agent.get()}),
      status_(initial_status(job, clock_.now_seconds())),
      server_(status_) {
  if (!server_.failure().empty()) {
    say("warning", fmt::format("dstrain status will not find this job: {}", server_.failure()));
  }
  pipe_.send(ToAgent::job, encode_job(job.spec));
}

void LocalLaunch::say(std::string_view level, const std::string& text) {
  const auto rank_of = [](std::string_view name) {
    return std::find(levels.begin(), levels.end(), name) - levels.begin();
  };
  if (rank_of(level) >= rank_of(job_.log_level)) {
    mux_.own_lines(fmt::format("dstrain: {}: {}", level, text));
  }
}

void LocalLaunch::obey(Order order) {
  WireWriter number;
  switch (order) {
    case Order::none:
      return;
    case Order::terminate:
      number.i32(SIGTERM);
      break;
    case Order::kill:
      number.i32(SIGKILL);
      break;
    case Order::abandon:
      if (!agent_status_) kill(agent_.pid, SIGKILL);
      return;
  }
  pipe_.send(ToAgent::signal, number.take());
}

void LocalLaunch::take_signals() {
  while (const auto signal = signals_.next()) {
    if (signal->number != SIGCHLD) stop(signal->number);
  }
  children_.reap([this](pid_t pid, int wait_status) { child_ended(pid, wait_status); });
}

void LocalLaunch::stop(int signal) {
  const bool first = !supervisor_.stop_signal();
  obey(supervisor_.stop_requested(signal, clock_.now_seconds()));
  if (!first || !supervisor_.stop_signal()) return;
  say("info", fmt::format("{}: asking the ranks to stop; they have {} s (again: now)",
                          signal_name(signal), job_.supervision.stop_grace_seconds));
}

void LocalLaunch::serve(std::span<const pollfd> fds) {
  status_.stopping = supervisor_.stopping();
  const JobServer::Wishes wishes = server_.serve(fds, clock_.now_seconds());
  // Who asks again only waits for the end, too: to hurry is for whoever sees the job's output.
  if (wishes.stop && !supervisor_.stopping()) stop(SIGTERM);
  if (wishes.save_request == 0) return;
  pipe_.send(ToAgent::tell, encode_rank_message({0, encode_save_request(wishes.save_request)}));
}

void LocalLaunch::handle_message(const RankMessage& message) {
  if (const auto progress = decode_progress(message.text)) {
    status_.ranks[check_rank(message.rank)].progress = progress;
  } else if (const auto answer = decode_save_answer(message.text); answer && message.rank == 0) {
    server_.answer_save(*answer);
  }
}

void LocalLaunch::child_ended(pid_t pid, int wait_status) {
  if (pid == agent_.pid) {
    agent_status_ = wait_status;
    return;
  }
  // A rank that the dead agent left to us. SIGKILL is how the agent's death ends its ranks; any
  // other end was the rank's own.
  const auto found = std::ranges::find_if(
      status_.ranks, [pid](const auto& entry) { return entry.second.pid == pid; });
  const bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  if (found != status_.ranks.end() && !killed)
    handle_exit({found->first, wait_status, OomVerdict::none});
}

int LocalLaunch::check_rank(int rank) const {
  if (rank < 0 || rank >= job_.supervision.world_size) {
    fail(ErrorCode::remote, "agent protocol: rank {} of {}", rank, job_.supervision.world_size);
  }
  return rank;
}

void LocalLaunch::handle_exit(const Exit& exit) {
  mux_.finish(check_rank(exit.rank));
  status_.ranks[exit.rank].wait_status = exit.wait_status;
  const bool failed_before = supervisor_.first_failure().has_value();
  obey(supervisor_.rank_exited(exit, clock_.now_seconds()));
  if (!failed_before && supervisor_.first_failure() && !supervisor_.all_ended()) {
    say("info", fmt::format("rank {} {}; stopping the other ranks", exit.rank,
                            describe_end(*supervisor_.first_failure())));
  }
}

void LocalLaunch::handle(const Frame& frame) {
  WireReader in(frame.payload);
  switch (static_cast<FromAgent>(frame.type)) {
    case FromAgent::hello: {
      const std::uint32_t version = in.u32();
      if (version == protocol_version) return;
      fail(ErrorCode::remote, "the agent speaks protocol {}, not {}", version, protocol_version);
    }
    case FromAgent::started: {
      const int rank = check_rank(in.i32());
      status_.ranks[rank].pid = in.i32();
      return;
    }
    case FromAgent::refused: {
      const int rank = in.i32();
      launch_failure_ = fmt::format("cannot start rank {} on {}: {}", rank, job_.host, in.string());
      return obey(supervisor_.launch_failed(clock_.now_seconds()));
    }
    case FromAgent::output: {
      const Output output = decode_output(frame.payload);
      mux_.output(check_rank(output.rank), output.stream, output.bytes);
      owed_acks_ += output.bytes.size();
      return;
    }
    case FromAgent::exited:
      return handle_exit(decode_exit(frame.payload));
    case FromAgent::told:
      return handle_message(decode_rank_message(frame.payload));
    case FromAgent::note:
      return say("warning", std::string(in.string()));
    case FromAgent::finished:
      finished_ = true;
      return;
  }
  fail(ErrorCode::remote, "agent protocol: unknown frame type {}", frame.type);
}

/// Lets the agent send more, as long as our own readers keep up.
void LocalLaunch::acknowledge() {
  out_.flush();
  err_.flush();
  if (owed_acks_ == 0 || out_.pending_bytes() + err_.pending_bytes() > queued_output_max) return;
  WireWriter ack;
  ack.u32(static_cast<std::uint32_t>(owed_acks_));
  pipe_.send(ToAgent::ack, ack.take());
  owed_acks_ = 0;
}

int LocalLaunch::poll_milliseconds() const {
  const auto deadline = supervisor_.deadline();
  if (!deadline) return -1;
  return static_cast<int>(std::clamp(*deadline - clock_.now_seconds(), 0.0, 1e6) * 1000) + 1;
}

void LocalLaunch::poll_once() {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0},
                          {agent_open_ ? pipe_.read_fd() : -1, POLLIN, 0},
                          {pipe_.pending_bytes() > 0 ? pipe_.write_fd() : -1, POLLOUT, 0},
                          {out_.pending_bytes() > 0 ? out_.fd() : -1, POLLOUT, 0},
                          {err_.pending_bytes() > 0 ? err_.fd() : -1, POLLOUT, 0}};
  const std::size_t server_fds = fds.size();
  server_.add_polls(fds);
  if (poll(fds.data(), fds.size(), poll_milliseconds()) < 0 && errno != EINTR) {
    fail_errno(errno, "poll");
  }
  if (fds[1].revents != 0) {
    agent_open_ = pipe_.receive();
    while (const auto frame = pipe_.next()) handle(*frame);
  }
  if (fds[0].revents != 0) take_signals();
  serve(std::span(fds).subspan(server_fds));
  obey(supervisor_.tick(clock_.now_seconds()));
  acknowledge();
  if (!pipe_.flush()) pipe_.drop_pending();  // the agent died; its stream's end tells the rest
}

/// After the agent's death: whatever it left is ours now.
void LocalLaunch::sweep() {
  const double end = clock_.now_seconds() + sweep_seconds_max;
  const auto on_end = [this](pid_t pid, int wait_status) {
    child_ended(pid, wait_status);
  };
  children_.reap(on_end);
  while (children_.kill_all() > 0 && clock_.now_seconds() < end) {
    poll(nullptr, 0, sweep_poll_milliseconds);
    children_.reap(on_end);
  }
}

void LocalLaunch::report() {
  for (int rank = 0; rank < job_.supervision.world_size; ++rank) mux_.finish(rank);
  if (!launch_failure_.empty()) return say("error", launch_failure_);
  if (const auto& failure = supervisor_.first_failure()) {
    if (shell_status(failure->wait_status) == status::stopped_with_checkpoint) return;
    const auto index = static_cast<std::size_t>(failure->rank);
    const std::vector<std::string> lines = mux_.last_lines(failure->rank);
    const auto& logs = job_.spec.log_files;
    const RankStatus& rank = status_.ranks[failure->rank];
    mux_.own_lines(
        failure_report({*failure, job_.host, rank.pid, rank.progress.value_or(Progress()).step,
                        lines, logs.empty() ? "" : logs.at(index)}));
  } else if (!finished_ && !supervisor_.stop_signal()) {
    say("error", fmt::format("the agent on {} (pid {}) {}; its ranks were ended with it", job_.host,
                             agent_.pid, describe_end({0, *agent_status_, OomVerdict::none})));
  }
}

/// Everything has ended; what is queued still goes out, unless someone wants us gone.
void LocalLaunch::flush_output() {
  const double end = clock_.now_seconds() + last_output_seconds;
  for (;;) {
    out_.flush();
    err_.flush();
    if (out_.pending_bytes() + err_.pending_bytes() == 0) return;
    if (supervisor_.stop_signal() && clock_.now_seconds() > end) return;
    std::array<pollfd, 3> fds{{{signals_.fd(), POLLIN, 0},
                               {out_.pending_bytes() > 0 ? out_.fd() : -1, POLLOUT, 0},
                               {err_.pending_bytes() > 0 ? err_.fd() : -1, POLLOUT, 0}}};
    poll(fds.data(), fds.size(), supervisor_.stop_signal() ? 100 : -1);
    while (const auto signal = signals_.next()) {
      if (signal->number != SIGCHLD) return;
    }
  }
}

int LocalLaunch::run() {
  try {
    while (agent_open_ || !agent_status_) poll_once();
  } catch (...) {
    if (!agent_status_) kill(agent_.pid, SIGKILL);
    sweep();
    throw;
  }
  if (!finished_) {
    supervisor_.agent_lost(*agent_status_);
    sweep();
  }
  report();
  server_.close(supervisor_.exit_status());
  flush_output();
  return supervisor_.exit_status();
}

}  // namespace

int run_local_job(const LocalJob& job) {
  ignore_broken_pipes();
  become_subreaper();
  return LocalLaunch(job).run();
}

}  // namespace dstrain::launcher
