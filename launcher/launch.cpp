#include "launcher/launch.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

#include <poll.h>
#include <sys/wait.h>

#include "launcher/children.h"
#include "launcher/console.h"
#include "launcher/failure_report.h"
#include "launcher/host_agents.h"
#include "launcher/job_children.h"
#include "launcher/job_desk.h"
#include "launcher/meeting.h"
#include "launcher/process.h"
#include "launcher/signals.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/worker_env.h"

namespace dstrain::launcher {
namespace {

using State = HostAgent::State;

constexpr std::size_t queued_output_max = 1U << 20;
constexpr double sweep_seconds_max = 10;
constexpr int sweep_poll_milliseconds = 5;
constexpr double finish_seconds = 5;  // from "finished" to the end of the stream

class Launch {
 public:
  explicit Launch(const LaunchJob& job);
  LaunchResult run();

 private:
  void supervise();
  void end_all();
  void poll_once();
  void take_signals();
  void stop(int signal);
  void serve(std::span<const pollfd> fds);
  void pass_on_save_request(std::uint32_t number);
  void receive(HostAgent& agent, std::span<const pollfd> fds);
  void handle(HostAgent& agent, const Frame& frame);
  void handle_news(HostAgent& agent, const Frame& frame);
  void advance_meeting();
  void say_start(const std::string& address, int port);
  void start_ranks();
  void give_up(const std::string& reason);
  void rank_ended(const Exit& exit);
  void host_ended(HostAgent& agent, const std::string& reason);
  void obey(Order order);
  void child_ended(pid_t pid, int wait_status);
  void acknowledge();
  void sweep();
  void report();
  void report_failure(const RankFailure& failure);
  [[nodiscard]] int poll_milliseconds() const;

  const LaunchJob& job_;
  SteadyClock clock_;
  std::vector<int> watched_ = launcher_signals();
  SignalSource signals_{watched_};
  JobChildren children_;
  Console console_;
  Supervisor supervisor_;
  JobDesk desk_;
  HostAgents agents_;
  std::optional<Meeting> meeting_;  ///< until the ranks are started
  bool given_up_ = false;           ///< before they were
  std::string failure_;             ///< of a host, when that is what ended the job
};

Launch::Launch(const LaunchJob& job)
    : job_(job),
      children_(job.id),
      console_(job.world_size,
               job.log_level,
               job.bare_output ? LogMux::Prefixes::bare : LogMux::Prefixes::all),
      supervisor_(job.supervision),
      desk_(job, clock_.now_seconds()) {
  if (desk_.failure().empty()) return;
  console_.say("warning", "dstrain status will not find this job: " + desk_.failure());
}

void Launch::obey(Order order) {
  switch (order) {
    case Order::none:
      return;
    case Order::terminate:
      return agents_.send_signal(SIGTERM);
    case Order::kill:
      return agents_.send_signal(SIGKILL);
    case Order::abandon:
      return agents_.abandon();
  }
}

void Launch::take_signals() {
  while (const auto signal = signals_.next()) {
    if (signal->number != SIGCHLD) stop(signal->number);
  }
  children_.reap([this](pid_t pid, int wait_status) { child_ended(pid, wait_status); });
}

void Launch::stop(int signal) {
  const bool first = !supervisor_.stop_signal();
  obey(supervisor_.stop_requested(signal, clock_.now_seconds()));
  if (meeting_) {
    given_up_ = true;
  } else if (first && supervisor_.stop_signal()) {
    console_.say("info", fmt::format("{}: asking the ranks to stop; they have {} s (again: now)",
                                     signal_name(signal), job_.supervision.stop_grace_seconds));
  }
}

void Launch::pass_on_save_request(std::uint32_t number) {
  if (number == 0 || meeting_) return;  // start_ranks() will
  agents_.front().send(ToAgent::tell, encode_rank_message({0, encode_save_request(number)}));
}

void Launch::serve(std::span<const pollfd> fds) {
  const JobServer::Wishes wishes = desk_.serve(fds, clock_.now_seconds(), supervisor_.stopping());
  if (wishes.stop) stop(SIGTERM);
  pass_on_save_request(wishes.save_request);
}

void Launch::child_ended(pid_t pid, int wait_status) {
  for (const auto& agent : agents_) {
    if (agent->child_ended(pid, wait_status)) return;
    if (agent->task().remote) continue;
    // A rank that the dead agent left to us. SIGKILL is how the agent's death ends its ranks; any
    // other end was the rank's own.
    const auto found = std::find_if(agent->pids.begin(), agent->pids.end(),
                                    [pid](const auto& entry) { return entry.second == pid; });
    const bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    if (found != agent->pids.end() && !killed) {
      rank_ended({found->first, wait_status, OomVerdict::none});
    }
  }
}

void Launch::give_up(const std::string& reason) {
  failure_ = reason;
  supervisor_.launch_failed(clock_.now_seconds());
  given_up_ = true;
}

void Launch::advance_meeting() {
  switch (meeting_->advance(clock_.now_seconds())) {
    case Meeting::Progress::waiting:
      return;
    case Meeting::Progress::failed:
      return give_up(meeting_->failures());
    case Meeting::Progress::done:
      return start_ranks();
  }
}

void Launch::say_start(const std::string& address, int port) {
  const int ranks = job_.supervision.ranks;
  const std::string of_all = ranks == job_.world_size ? "" : fmt::format(" of {}", job_.world_size);
  const std::string hosts =
      agents_.size() == 1 ? agents_.front().name() : fmt::format("{} hosts", agents_.size());
  console_.say("info", fmt::format("job {}: {}{} {} on {}, master {}:{}", job_.id, ranks, of_all,
                                   job_.world_size == 1 ? "rank" : "ranks", hosts, address, port));
}

void Launch::start_ranks() {
  const std::string address = meeting_->address();
  const int port = meeting_->port();
  meeting_.reset();
  say_start(address, port);
  for (const auto& agent : agents_) {
    if (!agent->noise().empty()) {
      console_.say("debug", fmt::format("{} printed before its agent started: {}", agent->name(),
                                        agent->noise()));
    }
    JobSpec spec = agent->task().spec;
    set_env(spec.env, env::master_addr, address);
    set_env(spec.env, env::master_port, std::to_string(port));
    agent->send(ToAgent::job, encode_job(spec));
    agent->state = State::working;
  }
  pass_on_save_request(desk_.newest_save_request());
}

void Launch::rank_ended(const Exit& exit) {
  console_.ranks().finish(exit.rank);
  desk_.ended(exit.rank, exit.wait_status);
  const bool failed_before = supervisor_.first_failure().has_value();
  obey(supervisor_.rank_exited(exit, clock_.now_seconds()));
  if (failed_before || !supervisor_.first_failure() || supervisor_.all_ended()) return;
  console_.say("info", fmt::format("rank {} {}; stopping the other ranks", exit.rank,
                                   describe_end(*supervisor_.first_failure())));
}

void Launch::handle_news(HostAgent& agent, const Frame& frame) {
  WireReader in(frame.payload);
  switch (static_cast<FromAgent>(frame.type)) {
    case FromAgent::started: {
      const int rank = agent.check_rank(in.i32());
      agent.pids[rank] = in.i32();
      return desk_.started(rank, agent.pids[rank]);
    }
    case FromAgent::refused: {
      const int rank = agent.check_rank(in.i32());
      const std::string_view reason = in.string();
      if (failure_.empty()) {
        failure_ = fmt::format("cannot start rank {} on {}: {}", rank, agent.name(), reason);
      }
      return obey(supervisor_.launch_failed(clock_.now_seconds()));
    }
    case FromAgent::exited: {
      const Exit exit = decode_exit(frame.payload);
      agent.check_rank(exit.rank);
      return rank_ended(exit);
    }
    case FromAgent::told: {
      const RankMessage message = decode_rank_message(frame.payload);
      agent.check_rank(message.rank);
      return desk_.heard(message);
    }
    case FromAgent::note:
      return console_.say("warning", fmt::format("{}: {}", agent.name(), in.string()));
    case FromAgent::finished:
      agent.state = State::finished;
      agent.finish_deadline = clock_.now_seconds() + finish_seconds;
      return;
    case FromAgent::beat:
      return;
    default:
      fail(ErrorCode::remote, "agent protocol: unexpected frame type {}", frame.type);
  }
}

void Launch::handle(HostAgent& agent, const Frame& frame) {
  if (meeting_) return meeting_->take(agent, frame);
  if (static_cast<FromAgent>(frame.type) != FromAgent::output) return handle_news(agent, frame);
  const Output output = decode_output(frame.payload);
  console_.ranks().output(agent.check_rank(output.rank), output.stream, output.bytes);
  agent.owed_acks += output.bytes.size();
}

/// Nothing more comes from it.
void Launch::host_ended(HostAgent& agent, const std::string& reason) {
  const bool finished = agent.state == State::finished;
  agent.state = State::ended;
  if (finished) return;
  agent.failure = reason;
  if (meeting_) return;
  if (!agent.task().remote) sweep();
  const double now = clock_.now_seconds();
  if (agent.pids.empty() && failure_.empty()) {
    failure_ = fmt::format("host {}: {}", agent.name(), reason);
    obey(supervisor_.launch_failed(now));
  }
  const bool lost_before = supervisor_.lost_a_host();
  obey(supervisor_.host_lost(agent.first_rank(), agent.ranks(), now));
  const std::string text =
      fmt::format("the agent on {} is lost, and its ranks with it: {}", agent.name(), reason);
  if (supervisor_.lost_a_host() && !lost_before) {
    failure_ = text;
    console_.say("info", fmt::format("lost {}; stopping the other ranks", agent.name()));
  } else if (!supervisor_.stop_signal()) {
    console_.say("warning", text);
  }
}

void Launch::receive(HostAgent& agent, std::span<const pollfd> fds) {
  if (agent.state == State::ended) return;
  try {
    if (!agent.receive(fds, [&](const Frame& frame) { handle(agent, frame); })) {
      host_ended(agent, agent.end_reason());
    } else if (agent.state == State::finished && clock_.now_seconds() > agent.finish_deadline) {
      host_ended(agent, "");
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::remote) throw;
    agent.abandon();
    host_ended(agent, error.what());
  }
}

/// Lets the agents send more, as long as our own readers keep up.
void Launch::acknowledge() {
  console_.flush();
  if (console_.pending_bytes() > queued_output_max) return;
  for (const auto& agent : agents_) agent->acknowledge();
}

int Launch::poll_milliseconds() const {
  double next = supervisor_.deadline().value_or(std::numeric_limits<double>::infinity());
  if (meeting_) next = std::min(next, meeting_->deadline());
  for (const auto& agent : agents_) {
    if (agent->state == State::finished) next = std::min(next, agent->finish_deadline);
  }
  const double seconds = next - clock_.now_seconds();
  return seconds > 1e6 ? -1 : static_cast<int>(std::max(seconds, 0.0) * 1000) + 1;
}

void Launch::poll_once() {
  const OutputSink& out = console_.out();
  const OutputSink& err = console_.err();
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0},
                          {out.pending_bytes() > 0 ? out.fd() : -1, POLLOUT, 0},
                          {err.pending_bytes() > 0 ? err.fd() : -1, POLLOUT, 0}};
  std::size_t at = fds.size();
  for (const auto& agent : agents_) agent->add_polls(fds);
  const std::size_t desk_at = fds.size();
  desk_.add_polls(fds);
  if (poll(fds.data(), fds.size(), poll_milliseconds()) < 0 && errno != EINTR) {
    fail_errno(errno, "poll");
  }
  for (const auto& agent : agents_) {
    receive(*agent, std::span(fds).subspan(at, HostAgent::poll_count));
    at += HostAgent::poll_count;
  }
  if (meeting_) advance_meeting();
  if (fds[0].revents != 0) take_signals();
  serve(std::span(fds).subspan(desk_at));
  obey(supervisor_.tick(clock_.now_seconds()));
  acknowledge();
  for (const auto& agent : agents_) agent->flush();
}

/// After an agent's death: whatever it left is ours now.
void Launch::sweep() {
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

void Launch::report_failure(const RankFailure& failure) {
  if (shell_status(failure.wait_status) == status::stopped_with_checkpoint) return;
  HostAgent& agent = agents_.of_rank(failure.rank);
  const auto index = static_cast<std::size_t>(failure.rank - agent.first_rank());
  const std::vector<std::string> lines = console_.ranks().last_lines(failure.rank);
  const auto& logs = agent.task().spec.log_files;
  std::string log = logs.empty() ? "" : logs.at(index);
  if (!log.empty() && agent.task().remote) log = fmt::format("{}:{}", agent.name(), log);
  console_.ranks().own_lines(failure_report({failure, agent.name(), agent.pids[failure.rank],
                                             desk_.last_step(failure.rank), lines, log}));
}

void Launch::report() {
  for (const auto& agent : agents_) {
    for (const RankSpec& rank : agent->task().spec.ranks) console_.ranks().finish(rank.rank);
  }
  if (!failure_.empty()) return console_.say("error", failure_);
  if (const auto& failure = supervisor_.first_failure()) report_failure(*failure);
}

void Launch::supervise() {
  agents_.start({job_.id, job_.hosts, job_.open, job_.silence_seconds, signals_.previous_mask()});
  if (agents_.relay_pid() != 0) children_.spare(agents_.relay_pid());
  meeting_.emplace(job_, agents_, clock_.now_seconds());
  while (agents_.any_open() && !given_up_) poll_once();
  report();
}

void Launch::end_all() {
  agents_.close();
  sweep();
}

LaunchResult Launch::run() {
  try {
    supervise();
  } catch (...) {
    agents_.abandon();
    end_all();
    throw;
  }
  end_all();
  desk_.close(supervisor_.exit_status());
  console_.drain(signals_, supervisor_.stop_signal().has_value());
  return {supervisor_.exit_status(), supervisor_.stop_signal().has_value()};
}

}  // namespace

LaunchResult run_job(const LaunchJob& job) {
  ignore_broken_pipes();
  become_subreaper();
  return Launch(job).run();
}

}  // namespace dstrain::launcher
