#pragma once
#include <string_view>

#include "launcher/doctor/checks.h"

namespace dstrain::launcher::doctor {

/// Runs the host's side of `dstrain doctor`, in a separate process that an agent starts like a
/// rank: answers (host_messages.h) until it is told to end, or the asker is gone. Throws
/// Error{usage} if an agent did not start it. Returns the exit status of the process.
int answer_for_host(const Probe& probe, const Question& question);

}  // namespace dstrain::launcher::doctor
