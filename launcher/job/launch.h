#pragma once
#include "launcher/job/launch_job.h"

namespace dstrain::launcher {

/// What became of a job.
struct LaunchResult {
  int status = 0;                ///< the exit status of the launcher
  bool stopped_by_user = false;  ///< someone sent the launcher a signal
};

/// Brings up an agent on every host, gives each its job, passes output and signals on, and returns
/// when nothing of the job is left. Takes over SIGINT, SIGTERM, SIGHUP and SIGCHLD of the process,
/// which must be single-threaded. When launcher or agent is killed, the other ends the job; only if
/// both are killed at once may a process that left its rank's session survive. Suspended or
/// stopped, the launcher holds up its output and nothing else. Throws Error when agents cannot be
/// started.
LaunchResult run_job(const LaunchJob& job);

}  // namespace dstrain::launcher
