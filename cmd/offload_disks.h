#pragma once
#include <string>
#include <vector>

#include "runtime/config/train_settings.h"

namespace dstrain::cmd {

/// The directories that memory shall be offloaded to and that this machine cannot use, one line
/// each: key, directory, reason and remedy.
std::vector<std::string> unusable_disks(const config::ZeroSettings& settings);

}  // namespace dstrain::cmd
