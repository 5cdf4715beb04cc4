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
  bool refuses_gpus = false;  ///< of other hosts: CPU ranks were chosen without --device
  bool bare_output = false;   ///< see LogMux::Prefixes
  bool relays_input = false;  ///< rank 0 reads this process's stdin, see InputRelay
  std::string program;        ///< see JobStatus
  std::string output_directory;
  /// The caller leaves out hosts that do not come up: they are not errors.
  bool elastic = false;
  std::vector<std::string> notices;  ///< warnings to print once all hosts have come up
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
  std::vector<HostPair> apart{};   ///< the cause of the failure: they cannot reach each other
};

/// Brings up an agent on every host, gives each its job, passes output and signals on, and returns
/// when nothing of the job is left. Handles the signals of the session. When launcher or agent is
/// killed, the other ends the job; only if both are killed at once may a process that left its
/// rank's session survive. A suspended or stopped launcher holds up its output and nothing else.
/// Answers the clients at the session's socket, except those that wait for the job's end. Throws
/// Error when agents cannot be started.
LaunchResult run_job(const LaunchJob& job, JobSession& session);

}  // namespace dstrain::launcher
