#pragma once
#include <string>
#include <vector>

#include "runtime/config/train_settings.h"
#include "zero/memory_plan.h"

namespace dstrain::session {

/// The directories that memory shall be offloaded to and that this machine cannot use, one line
/// each: key, directory, reason and remedy.
std::vector<std::string> unusable_disks(const config::ZeroSettings& settings);

/// Those whose disks have less room than `ranks` ranks of this machine begin with, likewise. Every
/// directory must be usable.
std::vector<std::string> full_disks(const config::ZeroSettings& settings,
                                    const zero::MemoryPlan& plan,
                                    int ranks);

}  // namespace dstrain::session
