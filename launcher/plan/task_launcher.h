#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/plan/options.h"
#include "runtime/rank/port_range.h"

namespace dstrain::launcher {

struct Resources;

/// An external program that starts one task per rank, on all hosts at once.
enum class TaskLauncher { slurm, openmpi, mpich };

/// As --launcher names it.
std::string_view name_of(TaskLauncher launcher);
/// None for the names of other launchers.
std::optional<TaskLauncher> task_launcher_named(std::string_view name);

/// The names of its program to look for, the least ambiguous first.
std::vector<std::string> program_names(TaskLauncher launcher);

/// Which task launcher a program is, and its version.
struct TaskLauncherVersion {
  TaskLauncher launcher = TaskLauncher::slurm;
  int major = 0;
  int minor = 0;
  std::string text;  ///< "24.11.5"
};

/// Reads what a program printed for --version. None: it is not a task launcher.
std::optional<TaskLauncherVersion> task_launcher_version(std::string_view printed);

/// How that program is started: each of its tasks is an agent with one rank (`dstrain agent
/// --connect`), which connects back to the launcher.
struct TaskCommand {
  std::vector<std::string> argv;     ///< the first is the path of srun, mpirun or mpiexec
  std::string host_list;             ///< which rank runs where, if the program reads it from stdin
  bool here_only = false;            ///< no rank runs on another machine
  std::optional<PortRange> ports{};  ///< where the launcher may listen for the agents
};

/// For resources with a task launcher. Asks the program for its version, since the options that
/// place ranks differ. Throws Error{remote} if the launcher is not on PATH or is too old.
TaskCommand make_task_command(const Resources& resources, const LaunchOptions& options);

}  // namespace dstrain::launcher
