#pragma once
#include <span>
#include <string>

namespace dstrain::cmd {

/// `dstrain bench launch`: the time from the launcher's start until the ranks have met, for 1 to
/// 256 hosts that agents on this machine stand in for, beside plainly starting as many processes.
int launch_bench_command(std::span<const std::string> arguments);

/// A rank of it: meets the others and notes when.
int meet_command(std::span<const std::string> arguments);

}  // namespace dstrain::cmd
