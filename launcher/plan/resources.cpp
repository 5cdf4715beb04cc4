#include "launcher/plan/resources.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <fmt/ranges.h>

#include "launcher/plan/host_name.h"
#include "launcher/plan/selection.h"
#include "runtime/base/error.h"
#include "runtime/os/visible_gpus.h"

namespace dstrain::launcher {
namespace {

constexpr int world_size_max = 1 << 20;  // what a rank accepts in WORLD_SIZE
constexpr const char* default_hostfile = "/job/hostfile";

std::vector<int> first_slots(int count) {
  std::vector<int> slots(static_cast<std::size_t>(count));
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

bool selects(const LaunchOptions& options) {
  return !options.include.empty() || !options.exclude.empty();
}

void check_conflicts(const LaunchOptions& options) {
  if ((options.num_nodes || options.num_gpus) && selects(options)) {
    fail(ErrorCode::usage,
         "--num_nodes and --num_gpus cannot be combined with --include or --exclude; pass one kind "
         "only");
  }
}

/// `from` says where the entries come from, for messages.
std::vector<HostSlots> hosts_of_file(const LaunchOptions& options,
                                     const std::vector<HostEntry>& entries,
                                     const std::string& from = "the hostfile") {
  std::vector<HostSlots> pool;
  pool.reserve(entries.size());
  for (const HostEntry& entry : entries) pool.push_back({entry.host, first_slots(entry.slots)});
  std::vector<HostSlots> hosts = select_slots(pool, {options.include, options.exclude, from});
  const auto count = static_cast<int>(hosts.size());
  if (options.num_nodes && *options.num_nodes > count) {
    fail(ErrorCode::usage, "--num_nodes {}: {} has {} hosts", *options.num_nodes, from, count);
  }
  hosts.resize(static_cast<std::size_t>(options.num_nodes.value_or(count)));
  if (!options.num_gpus) return hosts;
  for (HostSlots& host : hosts) {
    if (*options.num_gpus > static_cast<int>(host.slots.size())) {
      fail(ErrorCode::usage, "--num_gpus {}: host \"{}\" has {} slots in the hostfile",
           *options.num_gpus, host.host, host.slots.size());
    }
    host.slots = first_slots(*options.num_gpus);
  }
  return hosts;
}

/// The allocation's nodes with the slots that were typed, else one per task; where there is one
/// task per node, as for a launcher that starts a node's ranks, one per GPU.
std::vector<HostSlots> hosts_of_allocation(const LaunchOptions& options,
                                           const Allocation& allocation,
                                           bool gpus) {
  std::vector<HostEntry> entries = allocation.hosts;
  for (HostEntry& entry : entries) {
    if (gpus && entry.slots == 1) entry.slots = std::max(1, allocation.gpus_per_node);
    entry.slots = options.num_gpus.value_or(entry.slots);
  }
  return hosts_of_file(options, entries, "the allocation " + allocation.node_list);
}

/// SLURM starts tasks only on its allocation's nodes.
void check_in_allocation(const std::vector<HostSlots>& hosts, const Allocation& allocation) {
  for (const HostSlots& host : hosts) {
    if (std::ranges::find(allocation.hosts, host.host, &HostEntry::host) ==
        allocation.hosts.end()) {
      fail(ErrorCode::usage,
           "host \"{}\" of the hostfile is not in the allocation {}; remove it, or select hosts "
           "with --include",
           host.host, allocation.node_list);
    }
  }
}

std::vector<HostSlots> hosts_of_machine(const LaunchOptions& options,
                                        const Machine& machine,
                                        bool gpus) {
  if (options.num_gpus) return {{"localhost", first_slots(*options.num_gpus)}};
  // One CPU rank unless the user asks for more; --include and --exclude may name one slot per core.
  const int slots = gpus               ? static_cast<int>(gpu_slots(machine).size())
                    : selects(options) ? machine.cores
                                       : 1;
  SelectionText text{options.include, options.exclude};
  if (gpus && machine.visible_gpus) {
    text.numbering =
        fmt::format("slot k is entry k of CUDA_VISIBLE_DEVICES={}, from 0", *machine.visible_gpus);
  }
  return select_slots({{"localhost", first_slots(slots)}}, text);
}

/// --no_ssh without a hostfile: every node is like this one.
std::vector<HostSlots> like_nodes(const HostSlots& this_node, const LaunchOptions& options) {
  const int count = options.num_nodes.value_or(1);
  std::vector<HostSlots> nodes;
  nodes.reserve(static_cast<std::size_t>(count));
  for (const std::string& name : options.node_names) nodes.push_back({name, this_node.slots});
  for (int node = static_cast<int>(nodes.size()); node < count; ++node) {
    nodes.push_back({fmt::format("node{}", node), this_node.slots, true});
  }
  return nodes;
}

/// Whether the options ask for our own SSH connections.
bool asks_for_ssh(const LaunchOptions& options) {
  return !options.ssh_command.empty() || options.ssh_port || !options.ssh_config.empty() ||
         options.accept_new_host_keys || options.copy_binary || options.force_multi;
}

/// The one that --launcher names; inside an allocation SLURM, unless the options ask for something
/// else.
std::optional<TaskLauncher> find_task_launcher(const LaunchOptions& options,
                                               const HostOffers& offers) {
  const std::optional<TaskLauncher> typed = task_launcher_named(options.launcher);
  if (typed == TaskLauncher::slurm && !offers.allocation) {
    fail(ErrorCode::usage,
         "--launcher slurm: not inside an allocation (SLURM_JOB_ID and SLURM_JOB_NODELIST are not "
         "set); make one with salloc or sbatch");
  }
  const bool automatic =
      options.launcher == "auto" && offers.allocation && !options.no_ssh && !asks_for_ssh(options);
  if (automatic) return TaskLauncher::slurm;
  if (!typed && !options.launcher_args.empty()) {
    fail(ErrorCode::usage,
         "--launcher_args: this launch starts neither srun nor mpirun; pass --launcher to choose "
         "one");
  }
  return typed;
}

[[noreturn]] void refuse_same_machine(const HostSlots& first, const HostSlots& second) {
  fail(ErrorCode::usage, "\"{}\" and \"{}\" are the same machine; keep one of them", first.host,
       second.host);
}

/// Which hosts are other machines, if another program starts tasks on them. SLURM's name of this
/// node may differ from the machine's.
std::vector<bool> find_elsewhere(const std::vector<HostSlots>& hosts, const Machine& machine) {
  const char* const node = std::getenv("SLURMD_NODENAME");
  std::vector<bool> elsewhere;
  const HostSlots* here = nullptr;
  for (const HostSlots& host : hosts) {
    const bool own = is_this_machine(host.host, machine.host_name);
    elsewhere.push_back(!own && host.host != (node == nullptr ? "" : node));
    if (own && here != nullptr) refuse_same_machine(*here, host);
    if (own) here = &host;
  }
  return elsewhere;
}

std::vector<HostSlots> find_hosts(const LaunchOptions& options,
                                  const Machine& machine,
                                  bool gpus,
                                  const HostOffers& offers) {
  if (offers.hostfile) return hosts_of_file(options, *offers.hostfile);
  if (offers.allocation && find_task_launcher(options, offers)) {
    return hosts_of_allocation(options, *offers.allocation, gpus);
  }
  std::vector<HostSlots> here = hosts_of_machine(options, machine, gpus);
  const int nodes = options.num_nodes.value_or(1);
  if (options.no_ssh && !here.empty()) return like_nodes(here.front(), options);
  if (nodes > 1) {
    fail(ErrorCode::usage,
         "--num_nodes {}: more than one node needs a hostfile (-H FILE) or --no_ssh", nodes);
  }
  return here;
}

/// Which hosts are reached over the network.
std::vector<bool> find_remote(const LaunchOptions& options,
                              const std::vector<HostSlots>& hosts,
                              const Machine& machine) {
  std::vector<bool> remote;
  const HostSlots* here = nullptr;
  for (const HostSlots& host : hosts) {
    const bool own = is_this_machine(host.host, machine.host_name);
    remote.push_back(!own || options.force_multi);
    if (!own && options.launcher == "local") {
      fail(ErrorCode::usage,
           "--launcher local: host \"{}\" is another machine; pass --launcher ssh to reach it, or "
           "name localhost or {}",
           host.host, machine.host_name);
    }
    if (!own || options.force_multi) continue;
    if (here != nullptr) refuse_same_machine(*here, host);
    here = &host;
  }
  return remote;
}

/// The slots of this machine; null: the job does not use it.
const std::vector<int>* slots_here(const Resources& resources) {
  const std::vector<HostSlots>& hosts = resources.plan.hosts();
  const auto& remote = resources.remote;
  const auto own = std::find(remote.begin(), remote.end(), false) - remote.begin();
  const auto node = static_cast<std::size_t>(resources.node_rank.value_or(static_cast<int>(own)));
  return node < hosts.size() ? &hosts[node].slots : nullptr;
}

/// The option or file in which the user named slots; empty: none.
std::string typed_slots(const LaunchOptions& options, bool hostfile) {
  if (options.num_gpus) return fmt::format("--num_gpus {}", *options.num_gpus);
  if (!options.include.empty()) return "--include " + options.include;
  if (!options.exclude.empty()) return "--exclude " + options.exclude;
  return hostfile ? "hostfile " + options.hostfile.value_or(default_hostfile) : "";
}

/// Reports GPUs of this machine that the ranks cannot use.
void check_idle_gpus(const std::string& typed, int gpus, std::vector<std::string>& warnings) {
  if (!typed.empty()) fail(ErrorCode::usage, "{}: {}", typed, unusable_gpus("this machine", gpus));
  warnings.push_back(
      fmt::format("the GPUs of this machine ({}) are not used, because libdstrain_cuda.so is not "
                  "installed; one CPU rank runs. Pass --device cpu to silence this warning",
                  gpus));
}

/// Warns if slots differ from the machine's GPU numbers, which DeepSpeed's options mean.
void note_other_numbers(const std::vector<int>& slots,
                        const Machine& machine,
                        std::vector<std::string>& warnings) {
  const std::vector<std::string> names = gpu_slots(machine);
  std::vector<std::string> used;
  bool differ = false;
  for (const int slot : slots) {
    const std::string& name = used.emplace_back(names[static_cast<std::size_t>(slot)]);
    differ = differ || (!is_gpu_uuid(name) && name != std::to_string(slot));
  }
  if (!differ) return;
  warnings.push_back(
      fmt::format("--include and --exclude count the entries of CUDA_VISIBLE_DEVICES={}: the ranks "
                  "here use GPU {}",
                  *machine.visible_gpus, fmt::join(used, ",")));
}

/// --no_ssh: checks that the node is one of the plan's.
void check_node_rank(int node_rank, int nodes) {
  if (node_rank < nodes) return;
  fail(ErrorCode::usage, "--node_rank {}: there are {} nodes, counted from 0 (--num_nodes)",
       node_rank, nodes);
}

}  // namespace

HostPlan::HostPlan(std::vector<HostSlots> hosts) : hosts_(std::move(hosts)) {
  for (std::size_t node = 0; node < hosts_.size(); ++node) {
    int local_rank = 0;
    for (const int slot : hosts_[node].slots) {
      if (world_size() == world_size_max) {
        fail(ErrorCode::usage, "more than {} ranks; select fewer slots", world_size_max);
      }
      ranks_.push_back({world_size(), static_cast<int>(node), local_rank++, slot});
    }
  }
  if (ranks_.empty()) {
    fail(ErrorCode::usage,
         "no slot is left to run on: --include or --exclude removes them all; select at least one");
  }
}

const HostSlots& HostPlan::host_of(const RankAssignment& rank) const {
  return hosts_.at(static_cast<std::size_t>(rank.node_rank));
}

int HostPlan::local_size(const RankAssignment& rank) const {
  return static_cast<int>(host_of(rank).slots.size());
}

std::optional<std::filesystem::path> hostfile_path(const LaunchOptions& options) {
  if (options.hostfile) return *options.hostfile;
  std::error_code ignored;
  if (std::filesystem::exists(default_hostfile, ignored)) return default_hostfile;
  return std::nullopt;
}

std::optional<std::vector<HostEntry>> find_hostfile(const LaunchOptions& options) {
  const std::optional<std::filesystem::path> path = hostfile_path(options);
  if (!path) return std::nullopt;
  std::error_code ignored;
  if (!std::filesystem::exists(*path, ignored)) {  // mpirun's -H takes hosts
    fail(ErrorCode::input,
         "--hostfile {}: no such file; write a line \"NAME slots=N\" for each host into it, and "
         "pass --include HOST@HOST to use some of them; to use this machine only, leave --hostfile "
         "out",
         path->string());
  }
  return read_hostfile(*path);
}

Resources resolve_resources(const LaunchOptions& options,
                            const Machine& machine,
                            const HostOffers& offers,
                            RankDevice rank_device) {
  check_conflicts(options);
  const bool has_gpus = options.device != "cpu" && usable_gpus(machine) > 0;
  const bool gpus = has_gpus && rank_device == RankDevice::any;
  HostPlan plan(find_hosts(options, machine, gpus, offers));
  Resources resources{
      std::move(plan), {}, options.node_rank, find_task_launcher(options, offers), {}};
  resources.warnings = options.warnings;
  const std::vector<HostSlots>& hosts = resources.plan.hosts();
  if (resources.node_rank) {
    check_node_rank(*resources.node_rank, static_cast<int>(hosts.size()));
    resources.remote.assign(hosts.size(), false);
  } else if (resources.task_launcher) {
    if (resources.task_launcher == TaskLauncher::slurm) {
      check_in_allocation(hosts, *offers.allocation);
    }
    resources.remote = find_elsewhere(hosts, machine);
  } else {
    resources.remote = find_remote(options, hosts, machine);
  }
  const std::vector<int>* const own = slots_here(resources);
  if (own == nullptr || !has_gpus) return resources;
  if (!gpus) {
    check_idle_gpus(typed_slots(options, offers.hostfile.has_value()), machine.gpus,
                    resources.warnings);
    return resources;
  }
  if (options.oversubscribe) return resources;
  check_gpu_slots(*own, machine);
  if (selects(options)) note_other_numbers(*own, machine, resources.warnings);
  return resources;
}

std::string Resources::launcher() const {
  if (task_launcher) return std::string(name_of(*task_launcher));
  return std::find(remote.begin(), remote.end(), true) != remote.end() ? "ssh" : "local";
}

}  // namespace dstrain::launcher
