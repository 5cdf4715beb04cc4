#pragma once
#include <csignal>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launcher/plan/env_file.h"
#include "runtime/base/result.h"

namespace dstrain::launcher {

/// A process to be started. File descriptors are borrowed; -1 inherits ours.
struct ProcessSpec {
  std::string program;
  std::vector<std::string> argv;
  std::vector<EnvVar> env;        ///< over the environment of this process
  std::string working_directory;  ///< empty: ours
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  int inherited_fd = -1;          ///< stays open in the child, under its number
  std::vector<int> cpus;          ///< processors it may run on; empty: as this process
  std::vector<int> memory_nodes;  ///< NUMA nodes of its memory; empty: any
  bool new_session = false;       ///< its own session; otherwise its own process group
  bool die_with_parent = false;   ///< SIGKILL when the thread that calls start_process ends
  sigset_t signal_mask{};         ///< the child's
};

/// Forks and executes; returns when the program runs, or why it does not. Call it from a thread
/// that lives as long as the child should. The child is left to the caller to reap.
Result<pid_t> start_process(const ProcessSpec& spec);

/// "SIGKILL" for 9.
std::string signal_name(int signal);

}  // namespace dstrain::launcher
