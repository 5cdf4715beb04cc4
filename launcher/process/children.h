#pragma once
#include <vector>

#include <sys/types.h>

namespace dstrain::launcher {

/// Between two looks at children that are being killed.
inline constexpr int sweep_poll_milliseconds = 5;

/// Makes orphaned descendants children of this process instead of init's. Throws Error{io}.
void become_subreaper();

/// The children of this (single-threaded) process, zombies included. None can be mistaken for
/// another process before this one reaps it.
std::vector<pid_t> list_children();

/// Whether the environment the process was started with holds `entry` ("NAME=VALUE").
bool has_environment_entry(pid_t pid, const char* entry);

}  // namespace dstrain::launcher
