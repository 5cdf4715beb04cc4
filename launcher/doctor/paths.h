#pragma once
#include <string>
#include <vector>

#include "launcher/doctor/checks.h"

namespace dstrain::launcher::doctor {

/// The working directory, the one for temporary files, and the user's --path directories.
std::vector<std::string> directories_of(const Probe& probe, const Question& question);

/// Where sockets of running jobs may lie: $XDG_RUNTIME_DIR/dstrain, /tmp/dstrain-UID and their
/// substitutes if another user owns these names (job/job_directory.h).
std::vector<std::string> job_directories(const Probe& probe);

}  // namespace dstrain::launcher::doctor
