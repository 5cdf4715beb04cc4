#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/plan/options.h"
#include "launcher/process/process.h"

namespace dstrain::launcher {

struct Resources;

/// A program of others that starts one task per rank, on all hosts at once.
enum class TaskLauncher { slurm, openmpi, mpich };

/// As --launcher names it.
std::string_view name_of(TaskLauncher launcher);
/// None for the names of launchers that are no such program.
std::optional<TaskLauncher> task_launcher_named(std::string_view name);

/// How that program is started: each of its tasks is an agent with one rank (`dstrain agent
/// --connect`), which connects back to the launcher.
struct TaskCommand {
  std::vector<std::string> argv;  ///< the first is the path of srun, mpirun or mpiexec
  std::string host_list;          ///< which rank runs where, as the program reads it from stdin
  std::vector<EnvVar> env;        ///< over this process's environment
  bool here_only = false;         ///< no rank runs on another machine
};

/// For resources with a task launcher. Throws Error{remote} when the program is not on PATH.
TaskCommand make_task_command(const Resources& resources, const LaunchOptions& options);

}  // namespace dstrain::launcher
