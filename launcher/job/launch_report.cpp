#include "launcher/job/launch_report.h"

#include <csignal>
#include <ctime>

#include <sys/wait.h>

#include <fmt/format.h>

#include "launcher/process/process.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

std::string_view explain_kill(KillCause cause) {
  switch (cause) {
    case KillCause::memory:
      return " by the kernel's OOM killer: out of memory";
    case KillCause::likely_memory:
      return ", most likely by the kernel's OOM killer, which was active: out of memory";
    case KillCause::maybe_memory:
      return "; possibly out of memory";
    case KillCause::cpu_time:
      return ": it has used all the CPU time that ulimit -t allows; raise that limit";
    case KillCause::none:
      break;
  }
  return "";
}

constexpr const char* time_limit_passed = "SLURM's time limit (SLURM_JOB_END_TIME) has passed";
constexpr const char* earlier_signal =
    "have SLURM stop the ranks earlier, for example with #SBATCH --signal=TERM@300";

std::string describe_loss(const HostAgent& agent, const std::string& reason) {
  return fmt::format("the agent on {} is lost, and its ranks with it: {}", agent.name(), reason);
}

}  // namespace

std::string describe_end(const RankFailure& failure) {
  return fmt::format("{}{}", describe_end(failure.wait_status), explain_kill(failure.kill_cause));
}

std::string failure_report(const FailedRank& rank) {
  const std::string end = fmt::format("rank {} on {} (pid {}) {}", rank.failure.rank, rank.host,
                                      rank.pid, describe_end(rank.failure));
  std::string text = fmt::format("dstrain: error: {}\n", rank.cause.empty() ? end : rank.cause);
  if (rank.last_step > 0) text += fmt::format("  last step: {}\n", rank.last_step);
  if (!rank.last_lines.empty()) {
    text += fmt::format("  last lines of rank {}:\n", rank.failure.rank);
    for (const std::string& line : rank.last_lines) text += fmt::format("    {}\n", line);
  }
  if (!rank.log_file.empty()) text += fmt::format("  log file: {}\n", rank.log_file);
  return text;
}

void LaunchReport::starts(const std::string& address, int port) {
  const int ranks = job_.supervision.ranks;
  const std::string of_all = ranks == job_.world_size ? "" : fmt::format(" of {}", job_.world_size);
  const std::string hosts =
      agents_.hosts() == 1 ? agents_.front().name() : fmt::format("{} hosts", agents_.hosts());
  console_.say("info", fmt::format("job {}: {}{} {} on {}, master {}:{}", job_.id, ranks, of_all,
                                   job_.world_size == 1 ? "rank" : "ranks", hosts, address, port));
  for (const std::string& notice : job_.notices) console_.say("warning", notice);
  for (const auto& agent : agents_) {
    const std::string noise = agent->noise();
    if (noise.empty()) continue;
    console_.say("debug",
                 fmt::format("{} printed before its agent started: {}", agent->name(), noise));
  }
}

void LaunchReport::note(const HostAgent& agent, std::string_view text) {
  console_.say("warning", fmt::format("{}: {}", agent.name(), text));
}

/// How long ranks that were asked to stop may take.
std::string LaunchReport::grace() const {
  std::string text = fmt::format("up to {} s, longer while a save progresses",
                                 job_.supervision.stop_grace_seconds);
  const std::time_t left = job_.end_time ? *job_.end_time - std::time(nullptr) : 0;
  if (left > 0) text += fmt::format("; SLURM's time limit is in {} s", left);
  return text;
}

void LaunchReport::stops(std::optional<int> signal) {
  // Another `dstrain stop` only waits; only a signal hurries the ranks.
  const std::string cause = signal ? signal_name(*signal) : "dstrain stop";
  console_.say("info", fmt::format("{}: saving and stopping ({}). Press Ctrl-C{} to stop now",
                                   cause, grace(), signal ? " again" : ""));
}

void LaunchReport::host_stops(const HostAgent& agent, int signal) {
  host_stop_ = fmt::format("{} on {}", signal_name(signal), agent.name());
  console_.say("info", fmt::format("{}: saving and stopping ({})", host_stop_, grace()));
}

void LaunchReport::rank_failed(const RankFailure& failure) {
  console_.say("info", fmt::format("rank {} {}; stopping the other ranks", failure.rank,
                                   describe_end(failure)));
}

void LaunchReport::host_lost(const HostAgent& agent, const std::string& reason) {
  console_.say("warning", describe_loss(agent, reason));
}

void LaunchReport::save_killed(const RankFailure& failure) {
  if (!save_killer_.empty()) return;
  save_killer_ = fmt::format("rank {} on {} {}", failure.rank, agents_.of_rank(failure.rank).name(),
                             describe_end(failure));
}

void LaunchReport::save_lost(const HostAgent& agent, const std::string& reason) {
  if (save_killer_.empty()) save_killer_ = describe_loss(agent, reason);
}

void LaunchReport::time_is_over() {
  console_.say("warning",
               fmt::format("{}: SLURM kills the job KillWait seconds (30 by default) later, and a "
                           "checkpoint that is not saved by then is lost; {}",
                           time_limit_passed, earlier_signal));
}

void LaunchReport::starter_killed(const std::string& end) {
  set_causes({end + ", which ends the ranks that it started"});
  console_.say("info", end + "; stopping the ranks");
}

void LaunchReport::host_ended_job(const HostAgent& agent, const std::string& reason) {
  set_causes({describe_loss(agent, reason)});
  console_.say("info", fmt::format("lost {}; stopping the other ranks", agent.name()));
}

/// Neither of the two ranks is at fault.
std::string LaunchReport::cut_off(int rank, const JobStatus& job_status) const {
  const int other = *job_status.ranks.at(rank).unreachable;
  return fmt::format(
      "host {} cannot reach host {}, although this launcher reaches both: rank {} could not "
      "connect to rank {}",
      agents_.of_rank(rank).name(), agents_.of_rank(other).name(), rank, other);
}

void LaunchReport::say_failure(const RankFailure& failure,
                               const JobStatus& job_status,
                               std::string cause) {
  if (shell_status(failure.wait_status) == status::stopped_with_checkpoint) return;
  HostAgent& agent = agents_.of_rank(failure.rank);
  const auto index = static_cast<std::size_t>(failure.rank - agent.first_rank());
  const std::vector<std::string> lines = console_.ranks().last_lines(failure.rank);
  const auto& logs = agent.task().spec.log_files;
  std::string log = logs.empty() ? "" : logs.at(index);
  if (!log.empty() && agent.task().remote) log = fmt::format("{}:{}", agent.name(), log);
  console_.ranks().own_lines(
      failure_report({failure, agent.name(), agent.pids[failure.rank],
                      job_status.last_step(failure.rank), lines, log, std::move(cause)}));
}

void LaunchReport::say_killed_save() {
  std::string text = "the ranks were killed while saving, and that checkpoint is lost: ";
  if (save_killer_.empty()) {
    text += fmt::format(
        "they made no progress for {} s; for a slow disk, pass a longer --grace SECONDS",
        job_.supervision.stop_grace_seconds);
  } else {
    text += save_killer_ + ", and not by dstrain";
    if (job_.end_time && std::time(nullptr) >= *job_.end_time) {
      text += fmt::format("; {}: {}", time_limit_passed, earlier_signal);
    }
  }
  console_.say("error", text);
}

void LaunchReport::finish(const Supervisor& supervisor, const JobStatus& job_status) {
  for (const auto& agent : agents_) {
    for (const RankSpec& rank : agent->task().spec.ranks) console_.ranks().finish(rank.rank);
  }
  for (const std::string& cause : causes_) console_.say("error", cause);
  if (has_cause()) return;
  if (const auto& failure = supervisor.first_failure()) {
    const auto rank = supervisor.failed_by_itself() ? job_status.cut_off_rank() : std::nullopt;
    if (!rank) return say_failure(*failure, job_status, "");
    return say_failure({*rank, failure->wait_status}, job_status, cut_off(*rank, job_status));
  }
  if (supervisor.killed_a_save()) return say_killed_save();
  const bool saved = supervisor.exit_status() == status::stopped_with_checkpoint;
  if (saved || host_stop_.empty() || !supervisor.only_a_host_asked()) return;
  console_.say("error", host_stop_ + " asked the job to stop, but not all ranks saved");
}

}  // namespace dstrain::launcher
