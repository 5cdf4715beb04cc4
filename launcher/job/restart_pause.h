#pragma once
#include <optional>

#include "launcher/job/job_session.h"

namespace dstrain::launcher {

/// The pause before a restart, after this many in a row without a new checkpoint: none after the
/// first, then 1, 2, 4 seconds and so on up to a minute, so that a name server, say, may come back.
double restart_pause_seconds(int fruitless);

/// Waits for so long and answers clients meanwhile. Returns early with the signal when the job must
/// stop; SIGTERM if `dstrain stop` asks for it.
std::optional<int> pause_before_restart(double seconds, JobSession& session);

}  // namespace dstrain::launcher
