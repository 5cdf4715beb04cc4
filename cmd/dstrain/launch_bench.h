#pragma once
#include <span>
#include <string>

namespace dstrain::cmd {

/// `dstrain bench launch`: measures the time from the launcher's start until the ranks have met,
/// for 1 to 256 hosts simulated by agents on this machine, compared with starting as many plain
/// processes.
int launch_bench_command(std::span<const std::string> arguments);

/// A rank of it: meets the others and records the time.
int meet_command(std::span<const std::string> arguments);

}  // namespace dstrain::cmd
