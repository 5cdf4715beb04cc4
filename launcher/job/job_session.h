#pragma once
#include <vector>

#include "launcher/job/job_server.h"
#include "launcher/job/job_status.h"
#include "launcher/process/signals.h"

namespace dstrain::launcher {

/// Holds the status of a job and the socket at which `dstrain status|save|stop` find it, from its
/// first launch to its last. A client that connects between two launches is answered by the next
/// one. Also holds the signals of this process, which must be single-threaded, so that none is
/// lost, or ends the process, between two launches.
struct JobSession {
  /// `job` is about to be launched for the first time.
  explicit JobSession(const LaunchJob& job);

  std::vector<int> watched = job_signals();
  SignalSource signals{watched};
  JobStatus status;
  JobServer server{status};
};

}  // namespace dstrain::launcher
