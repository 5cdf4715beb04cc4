#pragma once
#include <string>
#include <vector>

namespace dstrain::launcher {

/// What a program prints on stdout and stderr, run to its end, whatever its status; one that has
/// not ended after so many seconds is killed. `argv`: the path first. Throws Error{remote} when it
/// cannot be started.
std::string output_of(const std::vector<std::string>& argv, double seconds_max);

}  // namespace dstrain::launcher
