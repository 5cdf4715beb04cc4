#pragma once
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/result.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// The output of a program and how it ended.
struct ProgramOutput {
  std::string text;                ///< at most 64 KiB
  std::optional<int> wait_status;  ///< none: it did not end in time, and was killed
};

/// Runs a program to its end, or kills it, and its process group, after so many seconds. `argv`:
/// the path first. It reads nothing; stdout and stderr are `text`. The failure says why it was not
/// started. Throws Error{io}.
Result<ProgramOutput> run_program(const std::vector<std::string>& argv, double seconds_max);

/// The same for a child that writes to the other end of `pipe`. Reaps it, unless it is stuck in the
/// kernel: nothing waits for a hung disk.
ProgramOutput output_of_child(pid_t child, UniqueFd pipe, double seconds_max);

}  // namespace dstrain::launcher
