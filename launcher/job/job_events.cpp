#include "launcher/job/job_events.h"

#include <algorithm>
#include <csignal>

#include "launcher/process/signals.h"
#include "runtime/base/error.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr double finish_seconds = 5;  // from "finished" to the end of the stream
/// How long after an agent or a rank the end of what started them may be noticed: a process closes
/// its connections before it has ended.
constexpr double starter_seconds = 0.3;

}  // namespace

void JobEvents::carry_out(Order order) const {
  switch (order) {
    case Order::none:
      return;
    case Order::terminate:
      return to_.agents.send_signal(SIGTERM);
    case Order::kill:
      if (to_.hangs.saves()) to_.supervisor.note_killed_save();
      return to_.agents.send_signal(SIGKILL);
    case Order::abandon:
      return to_.agents.abandon();
  }
}

void JobEvents::started(HostAgent& agent, WireReader in) {
  const int rank = agent.check_rank(in.i32());
  agent.pids[rank] = in.i32();
  to_.status.ranks.at(rank).pid = agent.pids[rank];
}

void JobEvents::refused(HostAgent& agent, WireReader in) {
  const int rank = agent.check_rank(in.i32());
  const std::string_view reason = in.string();
  if (!to_.report.has_cause()) {
    to_.report.set_causes(
        {fmt::format("cannot start rank {} on {}: {}", rank, agent.name(), reason)});
  }
  carry_out(to_.supervisor.launch_failed(to_.clock.now_seconds()));
}

void JobEvents::stop_asked(const HostAgent& agent, int signal) {
  if (std::ranges::find(stop_signals, signal) == stop_signals.end()) {
    fail(ErrorCode::remote, "agent protocol: signal {} does not stop a job", signal);
  }
  const bool first = !to_.supervisor.stopping();
  const bool blamed = to_.supervisor.first_failure().has_value();
  carry_out(to_.supervisor.host_asked_to_stop(signal, to_.clock.now_seconds()));
  const bool cleared = blamed && !to_.supervisor.first_failure();
  if (first || cleared) to_.report.host_stops(agent, signal);
}

/// The program that started the agents was killed, or has killed them, before any rank failed: that
/// is why the ranks end.
void JobEvents::note_starter_end() {
  if (to_.supervisor.stopping()) return;
  const std::string end = to_.agents.starter_kill(Deadline::after(starter_seconds));
  if (end.empty()) return;
  to_.report.starter_killed(end);
  carry_out(to_.supervisor.starter_killed(to_.clock.now_seconds()));
}

/// A rank was killed after a stop had begun the save: by SLURM at its time limit, say, or for
/// memory.
void JobEvents::note_rank_killed_in_save(const Exit& exit) {
  const bool killed = shell_status(exit.wait_status) == 128 + SIGKILL;
  if (!killed || to_.supervisor.killing() || !to_.hangs.saves()) return;
  if (to_.supervisor.note_killed_save()) {
    to_.report.save_killed({exit.rank, exit.wait_status, exit.kill_cause});
  }
}

void JobEvents::rank_ended(const Exit& exit) {
  const int ended_with = shell_status(exit.wait_status);
  if (ended_with == 128 + SIGKILL || ended_with == 128 + SIGTERM) note_starter_end();
  note_rank_killed_in_save(exit);
  to_.console.ranks().finish(exit.rank);
  to_.status.ranks.at(exit.rank).wait_status = exit.wait_status;
  const bool failed_before = to_.supervisor.first_failure().has_value();
  if (!failed_before && shell_status(exit.wait_status) == status::timed_out) {
    to_.hangs.rank_timed_out(exit.rank);
  }
  to_.hangs.rank_ended(exit.rank);
  carry_out(to_.supervisor.rank_exited(exit, to_.clock.now_seconds()));
  const auto& failure = to_.supervisor.first_failure();
  if (failed_before || !failure || to_.supervisor.all_ended()) return;
  to_.report.rank_failed(*failure);
}

void JobEvents::take(HostAgent& agent, const Frame& frame) {
  to_.hangs.heard(agent);
  switch (static_cast<FromAgent>(frame.type)) {
    case FromAgent::output: {
      const Output output = decode_output(frame.payload);
      to_.console.ranks().output(agent.check_rank(output.rank), output.stream, output.bytes);
      agent.owed_acks += output.bytes.size();
      return;
    }
    case FromAgent::started:
      return started(agent, WireReader(frame.payload));
    case FromAgent::refused:
      return refused(agent, WireReader(frame.payload));
    case FromAgent::exited: {
      const Exit exit = decode_exit(frame.payload);
      agent.check_rank(exit.rank);
      return rank_ended(exit);
    }
    case FromAgent::stop:
      return stop_asked(agent, WireReader(frame.payload).i32());
    case FromAgent::rank_message: {
      const RankMessage message = decode_rank_message(frame.payload);
      agent.check_rank(message.rank);
      if (const auto answer = to_.status.take(message)) to_.server.answer_save(*answer);
      return;
    }
    case FromAgent::note:
      return to_.report.note(agent, WireReader(frame.payload).string());
    case FromAgent::finished:
      agent.state = HostAgent::State::finished;
      agent.finish_deadline = to_.clock.now_seconds() + finish_seconds;
      return;
    case FromAgent::look:
      to_.hangs.take_look(agent, decode_look(frame.payload));
      if (to_.hangs.take_save_move()) to_.supervisor.save_moved(to_.clock.now_seconds());
      return;
    case FromAgent::stacks:
      return to_.hangs.take_stacks(agent, decode_stacks(frame.payload));
    case FromAgent::beat:
      return;
    default:
      fail(ErrorCode::remote, "agent protocol: unexpected frame type {}", frame.type);
  }
}

void JobEvents::child_ended(pid_t pid, int wait_status) {
  for (const auto& agent : to_.agents) {
    if (agent->child_ended(pid, wait_status)) return;
    if (agent->task().remote) continue;
    // A rank that the dead agent left to us. SIGKILL is how the agent's death ends its ranks, or
    // SIGPIPE while they write to it, which a shell that has run the writer tells by its status;
    // any other end was the rank's own.
    const auto found = std::find_if(agent->pids.begin(), agent->pids.end(),
                                    [pid](const auto& entry) { return entry.second == pid; });
    const int status = shell_status(wait_status);
    if (found != agent->pids.end() && status != 128 + SIGKILL && status != 128 + SIGPIPE) {
      rank_ended({found->first, wait_status, KillCause::none});
    }
  }
}

void JobEvents::host_lost(HostAgent& agent, const std::string& reason) {
  note_starter_end();
  const double now = to_.clock.now_seconds();
  for (const RankSpec& rank : agent.task().spec.ranks) to_.status.ranks.at(rank.rank).lost = true;
  if (to_.hangs.saves() && !to_.supervisor.killing() && to_.supervisor.note_killed_save()) {
    to_.report.save_lost(agent, reason);
  }
  to_.hangs.host_lost(agent);
  const bool explained = to_.supervisor.failure_explains_losses();
  if (agent.pids.empty() && !explained && !to_.report.has_cause()) {
    to_.report.set_causes({fmt::format("host {}: {}", agent.name(), reason)});
    carry_out(to_.supervisor.launch_failed(now));
  }
  const bool lost_before = to_.supervisor.lost_a_host();
  carry_out(to_.supervisor.host_lost(agent.first_rank(), agent.ranks(), now));
  if (to_.supervisor.lost_a_host() && !lost_before) {
    to_.report.host_ended_job(agent, reason);
  } else if (!explained && !to_.supervisor.stop_signal()) {
    to_.report.host_lost(agent, reason);
  }
}

}  // namespace dstrain::launcher
