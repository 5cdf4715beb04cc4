#pragma once
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "launcher/hosts/remote_link.h"
#include "launcher/job/supervisor.h"
#include "launcher/plan/elastic_plan.h"
#include "launcher/plan/job_env.h"
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// A job, ready to be started.
struct LaunchJob {
  std::string id;       ///< DSTRAIN_JOB of its processes
  std::string version;  ///< of dstrain, which each agent must have
  int world_size = 1;
  std::vector<HostTask> hosts;  ///< those that this launcher starts, in the order of ranks
  Supervisor::Settings supervision;
  std::string master_addr;  ///< empty: to be found out
  PortRequest master_port;
  double connect_seconds = 30;              ///< for all hosts to say hello
  double silence_seconds = 30;              ///< see Relay::Settings
  double hang_seconds = 30;                 ///< as Watch
  std::optional<std::time_t> end_time;      ///< of SLURM's allocation; none: not known
  OpenRemote open;                          ///< called in the relay, for each remote host
  std::optional<TaskCommand> task_command;  ///< starts all agents, of one rank each, instead
  std::string log_level = "info";
  bool refuses_gpus = false;  ///< on other hosts: slots are CPU ranks, which nobody has said
  bool bare_output = false;   ///< see LogMux::Prefixes
  std::string program;        ///< see JobStatus
  std::string output_directory;
  /// Hosts that do not come up are for the caller to leave out: they are no errors.
  bool elastic = false;
  std::vector<std::string> notices;  ///< warnings that hold if all hosts come up: said once they do
};

struct JobSession;

/// A host that did not come up.
struct AbsentHost {
  std::string host;
  std::string reason;
};

/// What became of a launch.
struct LaunchResult {
  int status = 0;                  ///< the exit status of the launcher
  bool stopped_by_user = false;    ///< by a signal to the launcher, or `dstrain stop`
  bool started = false;            ///< the hosts were given their ranks
  bool lost_a_host = false;        ///< after that
  std::vector<AbsentHost> absent;  ///< of an elastic job, when not all hosts came up
  std::vector<HostPair> apart{};   ///< that it failed of: they cannot reach each other
};

/// Brings up an agent on every host, gives each its job, passes output and signals on, and returns
/// when nothing of the job is left. Takes the signals that the session has. When launcher or agent
/// is killed, the other ends the job; only if both are killed at once may a process that left its
/// rank's session survive. Suspended or stopped, the launcher holds up its output and nothing else.
/// Whoever asks at the session's socket is answered, but for those who wait for the job's end.
/// Throws Error when agents cannot be started.
LaunchResult run_job(const LaunchJob& job, JobSession& session);

}  // namespace dstrain::launcher
