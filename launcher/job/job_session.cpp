#include "launcher/job/job_session.h"

#include "runtime/base/clock.h"

namespace dstrain::launcher {

JobSession::JobSession(const LaunchJob& job)
    : status(initial_status(job, SteadyClock().now_seconds())) {}

}  // namespace dstrain::launcher
