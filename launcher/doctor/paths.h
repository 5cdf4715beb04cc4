#pragma once
#include <string>
#include <vector>

#include "launcher/doctor/checks.h"

namespace dstrain::launcher::doctor {

/// The working directory, the one for temporary files, and those that the user asks about.
std::vector<std::string> directories_of(const Probe& probe, const Question& question);

/// Where sockets of running jobs may lie: $XDG_RUNTIME_DIR/dstrain, /tmp/dstrain-UID and what
/// stands in for them where somebody else has made them, as job/job_directory.h has it.
std::vector<std::string> job_directories(const Probe& probe);

}  // namespace dstrain::launcher::doctor
