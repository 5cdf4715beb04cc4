#include "launcher/job/launch.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "launcher/hosts/host_agents.h"
#include "launcher/job/agent_handshake.h"
#include "launcher/job/console.h"
#include "launcher/job/input_relay.h"
#include "launcher/job/job_events.h"
#include "launcher/job/job_session.h"
#include "launcher/job/launch_report.h"
#include "launcher/process/children.h"
#include "launcher/process/signals.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/rank/rank_control.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

using State = HostAgent::State;

constexpr std::size_t queued_output_max = 1U << 20;
constexpr double wait_slice_seconds = 1;  // of a wait for a deadline: a standstill shows

class Launch {
 public:
  Launch(const LaunchJob& job, JobSession& session);
  LaunchResult run();

 private:
  void supervise();
  [[nodiscard]] int exit_status() const;
  void tell_lost_output();
  void end_all();
  void poll_once();
  void take_signals();
  void stop(std::optional<int> signal);
  bool interrupt_rank();
  void relay_input();
  void serve(std::span<const pollfd> fds);
  void pass_on_save_request(std::uint32_t number);
  void receive(HostAgent& agent, std::span<const pollfd> fds);
  void take(HostAgent& agent, const Frame& frame);
  void advance_handshake();
  void handshake_failed();
  void start_ranks();
  void host_ended(HostAgent& agent, const std::string& reason);
  void take_losses(std::span<HostAgent* const> lost);
  void acknowledge();
  void tell_end_of_time();
  [[nodiscard]] double seconds_to_time_limit() const;
  [[nodiscard]] int poll_milliseconds() const;
  void wait(std::vector<pollfd>& fds, int milliseconds);

  const LaunchJob& job_;
  UnsuspendedClock clock_;
  SignalSource& signals_;
  JobChildren children_;
  Console console_;
  Supervisor supervisor_;
  JobStatus& status_;
  JobServer& server_;
  HostAgents agents_;
  LaunchReport report_{job_, agents_, console_};
  HangWatch hangs_{{agents_, supervisor_, status_, server_, console_, clock_}, job_.hang_seconds};
  JobEvents events_{{agents_, supervisor_, status_, server_, console_, report_, hangs_, clock_}};
  const JobChildren::OnEnd on_child_end_ = [this](pid_t pid, int wait_status) {
    events_.child_ended(pid, wait_status);
  };
  std::optional<AgentHandshake> handshake_;  ///< until the ranks are started
  std::optional<InputRelay> input_;          ///< of the job's rank 0, if it is here
  bool given_up_ = false;                    ///< before the ranks were started
  bool told_time_limit_ = false;
  std::vector<HostAgent*> lost_;  ///< in this round of poll_once()
  LaunchResult result_;
};

Launch::Launch(const LaunchJob& job, JobSession& session)
    : job_(job),
      signals_(session.signals),
      children_(job.id),
      console_(job.world_size,
               job.log_level,
               job.bare_output ? LogMux::Prefixes::bare : LogMux::Prefixes::all),
      supervisor_(job.supervision),
      status_(session.status),
      server_(session.server) {
  status_.set_ranks(job);
  if (job.relays_input && job.supervision.first_rank == 0) input_.emplace(STDIN_FILENO);
}

void Launch::take_signals() {
  while (const auto signal = signals_.next()) {
    if (signal->number == SIGINT && interrupt_rank()) continue;
    if (signal->number != SIGCHLD) stop(signal->number);
  }
  children_.reap(on_child_end_);
}

/// By a signal or, without one, by `dstrain stop`, which ends the job as SIGTERM does.
void Launch::stop(std::optional<int> signal) {
  const bool first = !supervisor_.stop_signal();
  events_.carry_out(supervisor_.stop_requested(signal.value_or(SIGTERM), clock_.now_seconds()));
  if (handshake_) {
    given_up_ = true;
  } else if (first && supervisor_.stop_signal() && !input_) {  // a conversation has nothing to save
    report_.stops(signal);
  }
}

/// Returns whether Ctrl-C is for rank 0 and not for the job.
bool Launch::interrupt_rank() {
  if (!input_ || supervisor_.stopping()) return false;
  const std::optional<std::string> message = input_->interrupt();
  if (message) agents_.front().send(ToAgent::rank_message, encode_rank_message({0, *message}));
  return message.has_value();
}

void Launch::relay_input() {
  const std::optional<std::string> message = input_->read();
  if (message) agents_.front().send(ToAgent::rank_message, encode_rank_message({0, *message}));
}

void Launch::pass_on_save_request(std::uint32_t number) {
  if (number == 0 || handshake_) return;  // start_ranks() will
  HostAgent& agent = agents_.front();
  agent.send(ToAgent::rank_message,
             encode_rank_message({agent.first_rank(), encode_save_request(number)}));
}

void Launch::serve(std::span<const pollfd> fds) {
  const bool stopping = status_.stopping = supervisor_.stopping();
  const JobServer::Requests requests = server_.serve(fds, SteadyClock().now_seconds());
  // A client that asks for a stop while the job is stopping only waits for the end: only a signal
  // to the launcher hurries it.
  if (requests.stop && !stopping) stop(std::nullopt);
  pass_on_save_request(requests.save_request);
  if (requests.save_request != 0) hangs_.save_requested();
  if (requests.stacks) hangs_.ask_for_stacks();
  hangs_.tick();
}

void Launch::advance_handshake() {
  switch (handshake_->advance(clock_.now_seconds())) {
    case AgentHandshake::Phase::waiting:
      return;
    case AgentHandshake::Phase::failed:
      return handshake_failed();
    case AgentHandshake::Phase::done:
      return start_ranks();
  }
}

void Launch::handshake_failed() {
  supervisor_.launch_failed(clock_.now_seconds());
  given_up_ = true;
  if (!job_.elastic) return report_.set_causes(handshake_->failures());
  for (const auto& agent : agents_) {
    if (!agent->failure.empty()) result_.absent.push_back({agent->name(), agent->failure});
  }
}

void Launch::start_ranks() {
  const std::string address = handshake_->address();
  const int port = handshake_->port();
  handshake_.reset();
  result_.started = true;
  status_.restarting = false;
  report_.starts(address, port);
  agents_.start_ranks(address, port);
  hangs_.ranks_started();
  pass_on_save_request(server_.newest_save_request());
}

void Launch::take(HostAgent& agent, const Frame& frame) {
  if (handshake_) return handshake_->take(agent, frame);
  if (input_ && static_cast<FromAgent>(frame.type) == FromAgent::rank_message) {
    const RankMessage message = decode_rank_message(frame.payload);
    const auto request = decode_input_request(message.text);
    if (message.rank == 0 && request) return input_->asked(*request);
  }
  events_.take(agent, frame);
}

/// The connection to the agent has ended.
void Launch::host_ended(HostAgent& agent, const std::string& reason) {
  const bool finished = agent.state == State::finished;
  agent.state = State::ended;
  if (finished) return;
  agent.failure = reason;
  if (!handshake_) lost_.push_back(&agent);
}

void Launch::take_losses(std::span<HostAgent* const> lost) {
  result_.lost_a_host |= !lost.empty();
  for (HostAgent* const agent : lost) {
    if (!agent->task().remote) children_.kill_all(on_child_end_);  // what it left is ours now
    events_.host_lost(*agent, agent->failure);
  }
}

void Launch::receive(HostAgent& agent, std::span<const pollfd> fds) {
  if (agent.state == State::ended) return;
  try {
    if (!agent.receive(fds, [&](const Frame& frame) { take(agent, frame); })) {
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

/// Lets the agents send more as long as our own readers keep up.
void Launch::acknowledge() {
  console_.flush();
  if (console_.pending_bytes() > queued_output_max) return;
  for (const auto& agent : agents_) agent->acknowledge();
}

/// Seconds until SLURM's time limit ends ranks that were asked to stop; infinite: no such limit, or
/// already reported.
double Launch::seconds_to_time_limit() const {
  const bool waits = supervisor_.asked_to_stop() && !supervisor_.all_ended();
  if (!job_.end_time || !waits || told_time_limit_) return std::numeric_limits<double>::infinity();
  return std::difftime(*job_.end_time, std::time(nullptr));
}

/// Reports it before SLURM kills this process with the ranks.
void Launch::tell_end_of_time() {
  if (seconds_to_time_limit() > 0) return;
  told_time_limit_ = true;
  report_.time_is_over();
}

int Launch::poll_milliseconds() const {
  double next = supervisor_.deadline().value_or(std::numeric_limits<double>::infinity());
  next = std::min(next, hangs_.deadline().value_or(next));
  if (handshake_) next = std::min(next, handshake_->deadline());
  for (const auto& agent : agents_) {
    if (agent->state == State::finished) next = std::min(next, agent->finish_deadline);
  }
  const double seconds = std::min(next - clock_.now_seconds(), seconds_to_time_limit());
  if (seconds > 1e6) return -1;
  return static_cast<int>(std::clamp(seconds, 0.0, wait_slice_seconds) * 1000) + 1;
}

/// Waits for the next event or deadline. Time in which this process was stopped does not count.
void Launch::wait(std::vector<pollfd>& fds, int milliseconds) {
  if (poll(fds.data(), fds.size(), milliseconds) < 0 && errno != EINTR) fail_errno(errno, "poll");
  milliseconds < 0 ? clock_.begin_slice() : clock_.skip_standstill(wait_slice_seconds);
}

void Launch::poll_once() {
  // Losses are handled one round late: an mpirun that ends all agents because a rank has failed
  // does so after that rank's agent has reported it, and that report may be read last.
  const std::vector<HostAgent*> lost = std::exchange(lost_, {});
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}, {input_ ? input_->fd() : -1, POLLIN, 0}};
  console_.add_polls(fds);
  std::size_t at = fds.size();
  for (const auto& agent : agents_) agent->add_polls(fds);
  const std::size_t server_at = fds.size();
  server_.add_polls(fds);
  wait(fds, lost.empty() ? poll_milliseconds() : 0);
  for (const auto& agent : agents_) {
    receive(*agent, std::span(fds).subspan(at, HostAgent::poll_count));
    at += HostAgent::poll_count;
  }
  take_losses(lost);
  if (handshake_) advance_handshake();
  if (fds[1].revents != 0) relay_input();
  if (fds[0].revents != 0) take_signals();
  serve(std::span(fds).subspan(server_at));
  events_.carry_out(supervisor_.tick(clock_.now_seconds()));
  tell_end_of_time();
  acknowledge();
  for (const auto& agent : agents_) agent->flush();
}

void Launch::supervise() {
  agents_.start({job_.id, job_.hosts, job_.open, job_.silence_seconds, signals_.previous_mask(),
                 job_.task_command ? &*job_.task_command : nullptr});
  if (agents_.relay_pid() != 0) children_.exclude(agents_.relay_pid());
  handshake_.emplace(job_, agents_, clock_.now_seconds());
  while ((agents_.any_open() || !lost_.empty()) && !given_up_) poll_once();
  report_.finish(supervisor_, status_);
}

void Launch::end_all() {
  agents_.close();
  children_.kill_all(on_child_end_);
}

int Launch::exit_status() const {
  const int status = supervisor_.exit_status();
  const bool goes_on = !result_.stopped_by_user || (result_.started && status <= 128) ||
                       status_.progress().has_value();
  return goes_on ? status : status_of_stop(status_, status);
}

/// Lost lines fail a program, but not a training, which also writes files.
void Launch::tell_lost_output() {
  const std::string reason = console_.output_failure();
  if (reason.empty()) return;
  const bool trains = !job_.output_directory.empty();
  console_.say(trains ? "warning" : "error", reason);
  console_.flush();
  if (result_.status == status::done && !trains) result_.status = status::failed;
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
  result_.stopped_by_user = supervisor_.asked_to_stop() || server_.stop_requested();
  result_.status = exit_status();
  if (supervisor_.failed_by_itself()) result_.apart = status_.hosts_apart();
  // The job does not restart: clients that wait for its end need not wait for the readers of its
  // output.
  if (result_.stopped_by_user && result_.started) server_.close(result_.status);
  console_.drain(signals_, supervisor_.stop_signal().has_value());
  tell_lost_output();
  return std::move(result_);
}

}  // namespace

LaunchResult run_job(const LaunchJob& job, JobSession& session) {
  ignore_broken_pipes();
  become_subreaper();
  return Launch(job, session).run();
}

}  // namespace dstrain::launcher
