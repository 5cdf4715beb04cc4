#include "runtime/base/parallel_start.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/number.h"

namespace dstrain {
namespace {

/// What a starter sets for each of its tasks.
struct TaskVariable {
  const char* name;
  const char* starter;
};

/// How many tasks there are. MPI's come first: tasks that mpirun starts on other nodes of an
/// allocation also have the variables of the srun that started its daemons there.
constexpr std::array<TaskVariable, 8> size_variables{{{"OMPI_COMM_WORLD_SIZE", "mpirun"},
                                                      {"MV2_COMM_WORLD_SIZE", "mpirun"},
                                                      {"PMI_SIZE", "mpirun or srun"},
                                                      {"MPI_LOCALNRANKS", "mpirun"},
                                                      {"PALS_SIZE", "mpiexec"},
                                                      {"JSM_NAMESPACE_SIZE", "jsrun"},
                                                      {"FLUX_JOB_SIZE", "flux run"},
                                                      {"SLURM_STEP_NUM_TASKS", "srun"}}};

std::optional<int> variable_number(const char* name) {
  const char* const typed = std::getenv(name);
  return parse_number<int>(typed == nullptr ? "" : typed);
}

[[noreturn]] void refuse_task(const TaskVariable& variable, int value, const std::string& tasks) {
  fail(
      ErrorCode::usage,
      "{}={}: {} has started this process as one of {} tasks, which dstrain cannot join to one "
      "job yet: each would run alone. Start dstrain once, outside {} (dstrain --num_gpus N ..., or "
      "-H HOSTFILE), or once per node with --no_ssh --node_rank R; or give every task RANK, "
      "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
      variable.name, value, variable.starter, tasks, variable.starter);
}

}  // namespace

void check_started_alone() {
  const std::optional<int> world = variable_number("WORLD_SIZE");
  if (std::getenv("TORCHELASTIC_RUN_ID") != nullptr && world && *world > 1) {
    fail(ErrorCode::usage,
         "WORLD_SIZE={}: torchrun has started this process as one of {} ranks, and dstrain starts "
         "ranks itself: start it once, outside torchrun",
         *world, *world);
  }
  for (const TaskVariable& variable : size_variables) {
    const std::optional<int> tasks = variable_number(variable.name);
    if (!tasks) continue;
    if (*tasks > 1) refuse_task(variable, *tasks, std::to_string(*tasks));
    return;
  }
  // A batch script has SLURM_PROCID=0 without being a task.
  const std::optional<int> slurm = variable_number("SLURM_PROCID");
  if (slurm && *slurm > 0) refuse_task({"SLURM_PROCID", "srun"}, *slurm, "several");
  const std::optional<int> pmix = variable_number("PMIX_RANK");
  if (pmix) refuse_task({"PMIX_RANK", "mpirun or srun"}, *pmix, "several");
}

}  // namespace dstrain
