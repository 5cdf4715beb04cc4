#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace dstrain::launcher {

/// The state of a thread as a letter of /proc/PID/task/TID/stat; '?' when there is no such thread.
char thread_state(pid_t process, pid_t thread);

/// "stopped" for T.
std::string_view thread_state_words(char state);

/// The threads of a process, the first one first; none when it has ended.
std::vector<pid_t> threads_of(pid_t process);

/// A thread's name; empty when there is no such thread.
std::string thread_name(pid_t process, pid_t thread);

/// Describes a thread that cannot be stopped, from /proc, a line each: the kernel's function that
/// it waits in, its system call with its file, the kernel's stack if that is readable.
std::vector<std::string> kernel_view(pid_t process, pid_t thread);

}  // namespace dstrain::launcher
