#pragma once
#include <string>

#include "launcher/protocol.h"
#include "launcher/supervisor.h"

namespace dstrain::launcher {

/// A job of this machine, ready to be started.
struct LocalJob {
  std::string id;                ///< DSTRAIN_JOB of its processes
  std::string host;              ///< as the user calls this machine
  std::string program;           ///< see JobStatus
  std::string output_directory;  ///< likewise
  JobSpec spec;
  Supervisor::Settings supervision;
  std::string log_level = "info";
  bool bare_output = false;  ///< see LogMux::Prefixes
};

/// Starts an agent with the job, passes output and signals on, and returns the exit status of the
/// launcher when nothing of the job is left. Takes over SIGINT, SIGTERM, SIGHUP and SIGCHLD of the
/// process, which must be single-threaded. When launcher or agent is killed, the other ends the
/// job; only if both are killed at once may a process that left its rank's session survive. Throws
/// Error when the agent cannot be started.
int run_local_job(const LocalJob& job);

}  // namespace dstrain::launcher
