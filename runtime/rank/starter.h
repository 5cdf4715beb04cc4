#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/rank/mpi_kind.h"

/// Who may start the ranks of a job other than dstrain's launcher, and how a rank learns from them
/// who it is: a table of environment variables.
namespace dstrain {

enum class StarterKind : std::uint8_t { torchrun, openmpi, mpich, slurm };

/// A number that a starter sets for each task.
struct TaskNumber {
  const char* variable = nullptr;  ///< null: the starter does not tell
  int value = -1;
};

/// This process as one of the tasks that mpirun, srun or torchrun has started together.
struct StartedTask {
  StarterKind kind = StarterKind::slurm;
  std::string_view starter;  ///< "mpirun of OpenMPI", as messages name it
  TaskNumber rank;
  TaskNumber size;
  TaskNumber local_rank;
  TaskNumber local_size;
  TaskNumber node;
  MpiKind mpi = MpiKind::none;
  /// What all tasks of one start have in common, and no other start on these machines has at the
  /// same time; empty where the starter tells nothing of the kind.
  std::string job;
  std::string host_list;  ///< SLURM's, of which task 0 has the first; empty otherwise
  const char* host_list_variable = nullptr;  ///< where that stands
};

/// What the environment says, by the innermost starter: torchrun runs under srun, not the reverse.
/// Nothing for a process that none of them has started, which a batch script of SLURM is too.
/// Throws Error{usage} for a variable that is no number or is missing.
std::optional<StartedTask> find_started_task();

/// Throws Error{usage} when the environment shows that some other starter has started this process
/// as one of several: nobody here knows which.
void refuse_unknown_tasks();

/// For a program that is to be started once: throws Error{usage} when it is one of several tasks.
void check_started_alone();

/// Likewise of a training where nobody known has started the tasks, and the environment has the
/// number of one of several: RANK with WORLD_SIZE, or a node's.
void refuse_numbered_training();

/// Takes what tells the tasks of a starter apart out of this process's environment: what it starts
/// is none of them. Not while other threads look at the environment.
void forget_started_task();

}  // namespace dstrain
