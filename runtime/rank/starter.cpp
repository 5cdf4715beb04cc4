#include "runtime/rank/starter.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/rank/slurm_host_list.h"

namespace dstrain {
namespace {

constexpr int tasks_max = 1 << 20;

/// The variables of one starter.
struct Starter {
  StarterKind kind;
  std::string_view name;
  const char* mark;  ///< set only for its tasks
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  const char* node;
  MpiKind mpi;
  const char* job;
};

/// Ordered from the innermost. OpenMPI: mpirun(1), "MPIRUN environment"; MPICH: hydra's
/// documentation; torchrun: torch.distributed.run, "Environment Variables"; SLURM: srun(1), "OUTPUT
/// ENVIRONMENT VARIABLES". SLURM counts the tasks of a node in a list over all nodes.
constexpr std::array<Starter, 4> starters{{
    {StarterKind::torchrun, "torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK",
     "LOCAL_WORLD_SIZE", "GROUP_RANK", MpiKind::none, "TORCHELASTIC_RUN_ID"},
    {StarterKind::openmpi, "mpirun of OpenMPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr,
     MpiKind::openmpi, "PMIX_NAMESPACE"},
    {StarterKind::mpich, "mpirun of MPICH", "MPI_LOCALNRANKS", "PMI_RANK", "PMI_SIZE",
     "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, MpiKind::mpich, nullptr},
    {StarterKind::slurm, "srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID", nullptr, "SLURM_NODEID", MpiKind::none, nullptr},
}};

/// A starter whose tasks cannot be distinguished here.
struct ForeignStarter {
  const char* size;
  std::string_view name;
};
constexpr std::array<ForeignStarter, 5> foreign_starters{
    {{"MV2_COMM_WORLD_SIZE", "mpirun of MVAPICH"},
     {"PALS_SIZE", "mpiexec of PALS"},
     {"JSM_NAMESPACE_SIZE", "jsrun"},
     {"FLUX_JOB_SIZE", "flux run"},
     {"PMI_SIZE", "a starter with PMI"}}};

std::string variable(const char* name) {
  const char* const value = name == nullptr ? nullptr : std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_set(const char* name) {
  return std::getenv(name) != nullptr;
}

TaskNumber read_number(const Starter& starter, const char* name) {
  if (name == nullptr || !is_set(name)) return {};
  const std::string text = variable(name);
  const std::optional<int> value = parse_number<int>(text);
  if (!value || *value < 0 || *value > tasks_max) {
    fail(ErrorCode::usage, "{}={}: {} sets a number from 0 to {} there", name, text, starter.name,
         tasks_max);
  }
  return {name, *value};
}

/// srun sets one variable with those of all nodes.
TaskNumber tasks_of_node(const TaskNumber& node) {
  const char* const name =
      is_set("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  const Result<std::vector<int>> counts = expand_task_counts(variable(name));
  if (!counts.ok() || node.value < 0) return {};
  const auto index = static_cast<std::size_t>(node.value);
  return index < counts.value().size() ? TaskNumber{name, counts.value()[index]} : TaskNumber{};
}

/// Returns the MPI that srun offers to its tasks: PMIx is for OpenMPI, PMI for MPICH.
MpiKind mpi_of_srun() {
  if (is_set("PMIX_RANK")) return MpiKind::openmpi;
  return is_set("PMI_RANK") ? MpiKind::mpich : MpiKind::none;
}

void add_slurm(StartedTask& task) {
  task.local_size = tasks_of_node(task.node);
  task.mpi = mpi_of_srun();
  task.job = fmt::format("{}-{}.{}-{}", variable("SLURM_CLUSTER_NAME"), variable("SLURM_JOB_ID"),
                         variable("SLURM_STEP_ID"), variable("SLURM_RESTART_COUNT"));
  // A restarted controller reuses job numbers.
  if (is_set("SLURM_JOB_START_TIME")) task.job += "-" + variable("SLURM_JOB_START_TIME");
  task.host_list_variable =
      is_set("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  task.host_list = variable(task.host_list_variable);
}

/// The variables of a numbered process whose starter is unknown here: a pod of Kubernetes, a
/// program started by dstrain or DeepSpeed's launcher. A size without a number is a script's own
/// setting.
struct Numbering {
  const char* number;
  const char* size;
};
constexpr std::array<Numbering, 6> numberings{{{"RANK", "WORLD_SIZE"},
                                               {"PET_NODE_RANK", "PET_NNODES"},
                                               {"NODE_RANK", "NNODES"},
                                               {"NODE_RANK", "WORLD_SIZE"},
                                               {"NODE_RANK", "AZUREML_NODE_COUNT"},
                                               {"VC_TASK_INDEX", "VC_WORKER_NUM"}}};

[[noreturn]] void refuse_foreign_task(const char* name, std::string_view starter) {
  fail(ErrorCode::usage,
       "{}={}: {} has started this process as one of several tasks, and dstrain does not know how "
       "it tells them apart: each would run alone. Start dstrain once (dstrain --num_gpus N ..., "
       "or -H HOSTFILE), or the tasks with mpirun, srun or torchrun, or give every task RANK, "
       "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
       name, variable(name), starter);
}

StartedTask read_task(const Starter& starter) {
  for (const char* const name : {starter.rank, starter.size}) {
    if (is_set(name)) continue;
    fail(ErrorCode::usage,
         "{} is set, as {} does for each of its tasks, and {} is not: unset the one, or pass "
         "both on",
         starter.mark, starter.name, name);
  }
  StartedTask task{.kind = starter.kind,
                   .starter = starter.name,
                   .rank = read_number(starter, starter.rank),
                   .size = read_number(starter, starter.size),
                   .local_rank = read_number(starter, starter.local_rank),
                   .local_size = read_number(starter, starter.local_size),
                   .node = read_number(starter, starter.node),
                   .mpi = starter.mpi,
                   .job = variable(starter.job),
                   .host_list = {}};
  if (starter.kind == StarterKind::slurm) add_slurm(task);
  return task;
}

/// Whether each task of `outer` has started its own `inner`, and so its own job. (srun may also
/// have started one mpirun or torchrun over several nodes, once per node.)
bool is_nested(const Starter& inner, const StartedTask& task, const Starter& outer) {
  const bool outer_tasks = parse_number<int>(variable(outer.size)).value_or(1) > 1;
  const bool both_mpi = inner.mpi != MpiKind::none && outer.mpi != MpiKind::none;
  const bool one_node = task.size.value == task.local_size.value;
  return is_set(outer.mark) && outer_tasks && (both_mpi || one_node);
}

}  // namespace

std::optional<StartedTask> find_started_task() {
  const auto* const inner =
      std::ranges::find_if(starters, [](const Starter& s) { return is_set(s.mark); });
  if (inner == starters.end()) return std::nullopt;
  StartedTask task = read_task(*inner);
  for (const Starter& outer : std::span(inner + 1, starters.end())) {
    if (!is_nested(*inner, task, outer)) continue;
    fail(ErrorCode::usage,
         "{}={} and {}={}: each task of {} has started {} of its own, which would be as many jobs: "
         "use one of the two, or unset what is left over from the other",
         outer.size, variable(outer.size), task.size.variable, task.size.value, outer.name,
         inner->name);
  }
  return task;
}

void refuse_unknown_tasks() {
  // A variable that is not a number counts as absent: these starters are not ours.
  for (const ForeignStarter& starter : foreign_starters) {
    const int tasks = parse_number<int>(variable(starter.size)).value_or(1);
    if (tasks > 1) refuse_foreign_task(starter.size, starter.name);
  }
  // A batch script has SLURM_PROCID=0 without being a task.
  if (parse_number<int>(variable("SLURM_PROCID")).value_or(0) > 0) {
    refuse_foreign_task("SLURM_PROCID", "srun");
  }
  if (is_set("PMIX_RANK")) refuse_foreign_task("PMIX_RANK", "a starter with PMIx");
}

void check_started_alone() {
  const std::optional<StartedTask> task = find_started_task();
  if (!task) return refuse_unknown_tasks();
  if (task->size.value <= 1) return;
  fail(ErrorCode::usage,
       "{}={}: {} has started this process as one of {} tasks, and dstrain starts ranks itself: "
       "let {} start dstraind, whose tasks are the ranks of one job, or dstrain once, outside it",
       task->size.variable, task->size.value, task->starter, task->size.value, task->starter);
}

void refuse_numbered_training() {
  if (find_started_task()) return;
  for (const Numbering& numbering : numberings) {
    const int size = parse_number<int>(variable(numbering.size)).value_or(0);
    if (size <= 1 || !is_set(numbering.number)) continue;
    fail(ErrorCode::usage,
         "{}={} {}={}: this process is one of {}, and each would train alone. Start dstrain once, "
         "for all hosts (dstrain -H HOSTFILE ...), or on each node with --no_ssh --num_nodes N "
         "--node_rank R --master_addr HOST, or start dstraind, whose processes are the ranks of "
         "one job; or unset {} "
         "and {}",
         numbering.number, variable(numbering.number), numbering.size, size, size, numbering.number,
         numbering.size);
  }
}

void forget_started_task() {
  const auto forget = [](const char* name) {
    if (name != nullptr) ::unsetenv(name);
  };
  for (const Starter& starter : starters) {
    forget(starter.mark);
    if (starter.kind == StarterKind::torchrun) continue;  // the other variables are generic names
    for (const char* const name :
         {starter.rank, starter.size, starter.local_rank, starter.local_size, starter.node}) {
      forget(name);
    }
  }
  for (const ForeignStarter& starter : foreign_starters) forget(starter.size);
  forget("PMIX_RANK");
}

}  // namespace dstrain
