#pragma once
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/plan/hostfile.h"
#include "launcher/plan/options.h"
#include "runtime/base/result.h"

namespace dstrain::launcher {

/// The SLURM allocation that this process runs in.
struct Allocation {
  std::string node_list;         ///< as SLURM writes it
  std::vector<HostEntry> hosts;  ///< its nodes, in SLURM's order; slots: the tasks of each
  int gpus_per_node = 0;         ///< that were asked for
};

/// Reads SLURM_JOB_ID, SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE (one task per node without the
/// latter, or in a smaller step); none outside of an allocation. Throws Error{usage} that names a
/// malformed variable.
std::optional<Allocation> this_allocation();

/// When SLURM's time limit ends this allocation, from SLURM_JOB_END_TIME; none outside of one, or
/// with a SLURM before 22.05, which does not set it. Later changes of the limit do not show.
std::optional<std::time_t> allocation_end();

/// If `srun --ntasks-per-node=1` has started one copy of this command per node, fills in --no_ssh,
/// --node_rank, --num_nodes and --master_addr from the step's nodes, unless they were typed. Throws
/// Error{usage} when there are more tasks than nodes, or when what was typed contradicts the step.
/// Does nothing outside of srun, or in its only task.
void join_step(LaunchOptions& options);

}  // namespace dstrain::launcher
