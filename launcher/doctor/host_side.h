#pragma once
#include <string_view>

#include "launcher/doctor/checks.h"

namespace dstrain::launcher::doctor {

/// What `dstrain doctor` has every host do, in a process of its own that an agent starts as if it
/// were a rank: answers (host_messages.h) until it is told to end, or nobody asks any more. Throws
/// Error{usage} when nobody does from the start. Returns the exit status of the process.
int answer_for_host(const Probe& probe, const Question& question);

}  // namespace dstrain::launcher::doctor
