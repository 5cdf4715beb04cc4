#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace dstrain::launcher {

/// The argument of `dstrain agent` that takes stacks; "RANK:PID:THREAD,THREAD" of each rank
/// follows, with the threads that matter first.
inline constexpr std::string_view stacks_argument = "--stacks";

/// Writes the stacks of these ranks to stdout in the format of Stacks. Stops a rank for some
/// milliseconds and then continues it; one that was stopped stays stopped. Returns the exit status.
int take_stacks(std::span<const std::string> ranks);

/// The function of libdstrain_stacks.so: appends the frames of a thread that this thread has
/// stopped by ptrace(2), innermost first, a line each; or why there are none.
using ReadFrames = void(pid_t process, pid_t thread, std::vector<std::string>* lines);
inline constexpr const char* read_frames_symbol = "dstrain_read_frames";

}  // namespace dstrain::launcher
