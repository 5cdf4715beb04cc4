#pragma once
#include <optional>

#include "launcher/job/job_session.h"

namespace dstrain::launcher {

/// Before a restart, after so many in a row that brought no new checkpoint: none after the first,
/// then 1, 2, 4 seconds and so on up to a minute, for what may come back, such as a name server.
double restart_pause_seconds(int fruitless);

/// Waits for so long, and answers those who ask for the job. Returns early with the signal when the
/// job shall stop, with SIGTERM when `dstrain stop` asks for it.
std::optional<int> pause_before_restart(double seconds, JobSession& session);

}  // namespace dstrain::launcher
