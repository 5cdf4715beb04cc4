#pragma once
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "runtime/base/result.h"

namespace dstrain::launcher {

/// One environment variable.
struct EnvVar {
  std::string name;
  std::string value;
  bool operator==(const EnvVar&) const = default;
};

/// Whether `name` can name an environment variable: a letter or '_', then letters, digits, '_'.
bool is_env_name(std::string_view name);

/// Sets `name` in `variables`, replacing an earlier value.
void set_env(std::vector<EnvVar>& variables, std::string_view name, std::string_view value);

/// A process to be started. File descriptors are borrowed; -1 inherits ours.
struct ProcessSpec {
  std::string program;
  std::vector<std::string> argv;
  std::vector<EnvVar> env;        ///< over the environment of this process
  std::string working_directory;  ///< empty: ours
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  std::vector<int> inherited_fds;  ///< stay open in the child, under their numbers
  std::vector<int> cpus;           ///< processors it may run on; empty: as this process
  std::vector<int> memory_nodes;   ///< NUMA nodes of its memory; empty: any
  bool new_session = false;        ///< its own session; otherwise its own process group
  /// This process and those that it starts may trace it, also where Yama lets only ancestors do so.
  bool traceable = false;
  /// The signal that it gets when the thread that calls start_process ends: SIGKILL, or SIGCONT for
  /// a process that notices that end unless it is stopped; 0: none.
  int parent_death_signal = 0;
  bool ignores_stops = false;  ///< it ignores stop_signals
  sigset_t signal_mask{};      ///< the child's
};

/// Forks and executes; returns once the program runs, or why it does not. Call it from a thread
/// that lives as long as the child should. The child is left to the caller to reap.
Result<pid_t> start_process(const ProcessSpec& spec);

/// "SIGKILL" for 9.
std::string signal_name(int signal);

/// A wait status as a shell shows it: the exit status, or 128 + the signal.
int shell_status(int wait_status);

/// "ended with status 7", "was killed by SIGSEGV".
std::string describe_end(int wait_status);

}  // namespace dstrain::launcher
