#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "launcher/hosts/host_agents.h"
#include "launcher/job/console.h"
#include "launcher/job/job_status.h"
#include "launcher/job/launch.h"
#include "launcher/job/supervisor.h"

namespace dstrain::launcher {

/// The rank that failed first.
struct FailedRank {
  RankFailure failure;
  std::string host;
  pid_t pid = 0;
  std::int64_t last_step = 0;  ///< 0: it took none, or did not report one
  std::span<const std::string> last_lines;
  std::string log_file;  ///< empty: none
  std::string cause{};   ///< printed instead of how it ended, if the rank is not at fault
};

/// "ended with status 7", "was killed by SIGSEGV".
std::string describe_end(const RankFailure& failure);

/// The block that ends a failed run's stderr.
std::string failure_report(const FailedRank& rank);

/// Tells the user what happens to the job while it runs, a line each, and at the end why it failed.
class LaunchReport {
 public:
  /// Borrows all.
  LaunchReport(const LaunchJob& job, const HostAgents& agents, Console& console)
      : job_(job), agents_(agents), console_(console) {}

  /// The ranks are about to be started; rank 0 will listen there.
  void starts(const std::string& address, int port);
  void note(const HostAgent& agent, std::string_view text);
  /// The ranks were asked to stop: by the user's first signal, or, without one, by `dstrain stop`.
  void stops(std::optional<int> signal);
  /// The ranks were asked to stop by a signal to the agent of a host.
  void host_stops(const HostAgent& agent, int signal);
  /// The rank's end stops others that still run.
  void rank_failed(const RankFailure& failure);
  void host_lost(const HostAgent& agent, const std::string& reason);
  /// During a save that a stop had begun, a rank was killed by something else than this launcher,
  /// or a host was lost. finish() reports the first of them.
  void save_killed(const RankFailure& failure);
  void save_lost(const HostAgent& agent, const std::string& reason);
  /// SLURM's time limit has passed, and the ranks that were asked to stop have not ended.
  void time_is_over();
  /// The program that started all agents was killed, or kills them, which ends the job: "srun (pid
  /// 17) was killed by SIGKILL".
  void starter_killed(const std::string& end);
  /// The loss of this host stops the other ranks and is the cause of the failure.
  void host_ended_job(const HostAgent& agent, const std::string& reason);

  /// Sets why the job fails when no rank is the cause, one error per line, in place of earlier
  /// causes.
  void set_causes(std::vector<std::string> causes) { causes_ = std::move(causes); }
  [[nodiscard]] bool has_cause() const { return !causes_.empty(); }
  /// Prints unfinished lines of the ranks, and why the job failed.
  void finish(const Supervisor& supervisor, const JobStatus& job_status);

 private:
  void say_failure(const RankFailure& failure, const JobStatus& job_status, std::string cause);
  [[nodiscard]] std::string cut_off(int rank, const JobStatus& job_status) const;
  void say_killed_save();
  [[nodiscard]] std::string grace() const;

  const LaunchJob& job_;
  const HostAgents& agents_;
  Console& console_;
  std::vector<std::string> causes_;
  std::string host_stop_;    ///< "SIGTERM on w1", which has asked the job to stop
  std::string save_killer_;  ///< "rank 1 on w1 was killed by SIGKILL"; empty: this launcher
};

}  // namespace dstrain::launcher
