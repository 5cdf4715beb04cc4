#include "launcher/plan/allocation.h"

#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/rank/slurm_host_list.h"
#include "runtime/rank/starter.h"

namespace dstrain::launcher {
namespace {

std::string value_of(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// The variable's value; 0 if it is not set or not a number.
int number_of(const char* name) {
  return parse_number<int>(value_of(name)).value_or(0);
}

std::vector<std::string> listed_hosts(const char* name, const std::string& list) {
  Result<std::vector<std::string>> hosts = expand_host_list(list);
  if (!hosts.ok()) fail(ErrorCode::usage, "{}: {}", name, hosts.error());
  if (hosts.value().empty()) fail(ErrorCode::usage, "{} names no host", name);
  return std::move(hosts.value());
}

bool in_step() {
  return !value_of("SLURM_STEP_ID").empty();
}

/// Refuses typed options that contradict the step.
void check_step(const LaunchOptions& options, const StartedTask& task, int nodes) {
  const bool alike = options.num_nodes.value_or(nodes) == nodes;
  if (alike && options.node_rank.value_or(task.node.value) != task.node.value) {
    fail(ErrorCode::usage, "--node_rank {} contradicts {}={}; leave it out", *options.node_rank,
         task.node.variable, task.node.value);
  }
  if (options.launcher == "auto" || options.launcher == "local") return;
  fail(ErrorCode::usage,
       "--launcher {}: srun has started one dstrain per node ({}={}), and each starts its own "
       "node's ranks; leave the option out, or start dstrain outside of srun",
       options.launcher, task.size.variable, task.size.value);
}

}  // namespace

std::optional<Allocation> this_allocation() {
  Allocation allocation{.node_list = value_of("SLURM_JOB_NODELIST"), .hosts = {}};
  if (value_of("SLURM_JOB_ID").empty() || allocation.node_list.empty()) return std::nullopt;
  for (std::string& host : listed_hosts("SLURM_JOB_NODELIST", allocation.node_list)) {
    allocation.hosts.push_back({std::move(host), 1});
  }
  allocation.gpus_per_node = number_of("SLURM_GPUS_ON_NODE");
  const std::string tasks = value_of("SLURM_TASKS_PER_NODE");
  if (tasks.empty()) return allocation;
  const Result<std::vector<int>> counts = expand_task_counts(tasks);
  if (!counts.ok()) fail(ErrorCode::usage, "SLURM_TASKS_PER_NODE: {}", counts.error());
  if (counts.value().size() != allocation.hosts.size()) {
    if (in_step()) return allocation;  // it describes the step, which has fewer nodes
    fail(ErrorCode::usage, "SLURM_TASKS_PER_NODE={} does not fit SLURM_JOB_NODELIST={}", tasks,
         allocation.node_list);
  }
  for (std::size_t i = 0; i < allocation.hosts.size(); ++i) {
    const int count = counts.value()[i];
    if (count > slots_max) fail(ErrorCode::usage, "SLURM_TASKS_PER_NODE={}: too many", tasks);
    allocation.hosts[i].slots = count;
  }
  return allocation;
}

std::optional<std::time_t> allocation_end() {
  if (value_of("SLURM_JOB_ID").empty()) return std::nullopt;
  return parse_number<std::time_t>(value_of("SLURM_JOB_END_TIME"));
}

void join_step(LaunchOptions& options) {
  const std::optional<StartedTask> task = find_started_task();
  if (!task || task->kind != StarterKind::slurm || task->size.value < 2) return;
  if (task->node.value < 0) return;
  const std::vector<std::string> hosts = listed_hosts("SLURM_STEP_NODELIST", task->host_list);
  const int nodes = static_cast<int>(hosts.size());
  if (task->size.value != nodes) {
    fail(ErrorCode::usage,
         "{}={} on {}: srun has started several dstrain per node, and each would start all ranks "
         "of its node; pass --ntasks-per-node=1 to srun, or start dstrain once outside of srun",
         task->size.variable, task->size.value, task->host_list);
  }
  check_step(options, *task, nodes);
  options.no_ssh = true;
  options.node_rank = task->node.value;
  if (!options.hostfile) options.num_nodes = nodes;
  options.node_names = hosts;
  if (options.master_addr.empty()) options.master_addr = hosts.front();
}

}  // namespace dstrain::launcher
