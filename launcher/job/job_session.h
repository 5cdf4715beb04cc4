#pragma once
#include <vector>

#include "launcher/job/job_server.h"
#include "launcher/job/job_status.h"
#include "launcher/process/signals.h"

namespace dstrain::launcher {

/// What a job is to those who ask for it, from its first launch to its last: what is known of it,
/// and the socket at which `dstrain status|save|stop` find it. Who connects while nothing is
/// launched is answered by the next launch. It has the signals of this process, which must be
/// single-threaded, so that none is lost, or ends the process, between two launches.
struct JobSession {
  /// Of a job that is about to be launched for the first time.
  explicit JobSession(const LaunchJob& job);

  std::vector<int> watched = job_signals();
  SignalSource signals{watched};
  JobStatus status;
  JobServer server{status};
};

}  // namespace dstrain::launcher
