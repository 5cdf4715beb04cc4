#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/rank/mpi_kind.h"

/// The starters of a job's ranks other than dstrain's launcher, and how a rank learns its identity
/// from them: a table of environment variables.
namespace dstrain {

enum class StarterKind : std::uint8_t { torchrun, openmpi, mpich, slurm };

/// A number that a starter sets for each task.
struct TaskNumber {
  const char* variable = nullptr;  ///< null: the starter does not set it
  int value = -1;
};

/// This process as one of the tasks started together by mpirun, srun or torchrun.
struct StartedTask {
  StarterKind kind = StarterKind::slurm;
  std::string_view starter;  ///< "mpirun of OpenMPI": the name in messages
  TaskNumber rank;
  TaskNumber size;
  TaskNumber local_rank;
  TaskNumber local_size;
  TaskNumber node;
  MpiKind mpi = MpiKind::none;
  /// A text that all tasks of one start share, and that no other start on these machines has at the
  /// same time; empty if the starter has none.
  std::string job;
  std::string host_list;  ///< SLURM's list, whose first host runs task 0; else empty
  const char* host_list_variable = nullptr;  ///< the variable with that list
};

/// Reads the environment of the innermost starter: torchrun runs under srun, not the reverse.
/// Returns nothing for a process that none of them has started, such as a batch script of SLURM.
/// Throws Error{usage} for a variable that is not a number or is missing.
std::optional<StartedTask> find_started_task();

/// Throws Error{usage} if the environment shows that another starter has started this process as
/// one of several, because its rank cannot be determined.
void refuse_unknown_tasks();

/// For a program that must be started once: throws Error{usage} if it is one of several tasks.
void check_started_alone();

/// Throws Error{usage} in the same way for a training without a known starter, if the environment
/// has the number of one of several tasks: RANK with WORLD_SIZE, or a node's.
void refuse_numbered_training();

/// Removes the variables that identify a starter's task from this process's environment, so that
/// its children are not mistaken for tasks. Do not call while other threads read the environment.
void forget_started_task();

}  // namespace dstrain
