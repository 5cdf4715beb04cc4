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

/// By SLURM_JOB_ID, SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE (else, or in a smaller step, one
/// each); none outside. Throws Error{usage} that names a variable which SLURM has not written.
std::optional<Allocation> this_allocation();

/// When SLURM's time limit ends the allocation that this process runs in, as SLURM_JOB_END_TIME
/// says; none outside, or where SLURM (before 22.05) does not say. A limit that is changed later
/// does not show.
std::optional<std::time_t> allocation_end();

/// For a command of which `srun --ntasks-per-node=1` has started one copy per node: fills in, where
/// they were not typed, --no_ssh, --node_rank, --num_nodes and --master_addr from the step's nodes.
/// Throws Error{usage} when there are more tasks than nodes, or when what was typed contradicts the
/// step. Does nothing for what is no task of srun, or its only one.
void join_step(LaunchOptions& options);

}  // namespace dstrain::launcher
