#include "launcher/plan/resources.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "launcher/plan/host_name.h"
#include "launcher/plan/selection.h"
#include "runtime/base/error.h"

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
         "--num_nodes and --num_gpus cannot stand beside --include or --exclude; give one kind");
  }
}

std::vector<HostSlots> hosts_of_file(const LaunchOptions& options,
                                     const std::vector<HostEntry>& entries) {
  std::vector<HostSlots> pool;
  pool.reserve(entries.size());
  for (const HostEntry& entry : entries) pool.push_back({entry.host, first_slots(entry.slots)});
  std::vector<HostSlots> hosts = select_slots(pool, {options.include, options.exclude});
  const auto count = static_cast<int>(hosts.size());
  if (options.num_nodes && *options.num_nodes > count) {
    fail(ErrorCode::usage, "--num_nodes {}: the hostfile has {} hosts", *options.num_nodes, count);
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

/// CUDA_VISIBLE_DEVICES as slots; its numbers are the machine's own, so no range is checked.
std::vector<int> visible_slots(const std::string& visible) {
  return parse_slot_list(visible, "CUDA_VISIBLE_DEVICES (use device numbers, or --include)");
}

std::vector<HostSlots> hosts_of_machine(const LaunchOptions& options,
                                        const Machine& machine,
                                        bool gpus,
                                        std::vector<std::string>& warnings) {
  if (gpus && machine.visible_gpus) {
    if (!options.num_gpus && !selects(options)) {
      return {{"localhost", visible_slots(*machine.visible_gpus)}};
    }
    warnings.emplace_back(
        "CUDA_VISIBLE_DEVICES is set, but --num_gpus, --include or --exclude decide");
  }
  if (options.num_gpus) return {{"localhost", first_slots(*options.num_gpus)}};
  // One CPU rank unless someone asks; who names slots may name one per core.
  const int slots = gpus ? machine.gpus : selects(options) ? machine.cores : 1;
  return select_slots({{"localhost", first_slots(slots)}}, {options.include, options.exclude});
}

/// --no_ssh without a hostfile: every node is like this one.
std::vector<HostSlots> like_nodes(const HostSlots& this_node, int count) {
  std::vector<HostSlots> nodes;
  nodes.reserve(static_cast<std::size_t>(count));
  for (int node = 0; node < count; ++node) {
    nodes.push_back({fmt::format("node{}", node), this_node.slots});
  }
  return nodes;
}

std::vector<HostSlots> find_hosts(const LaunchOptions& options,
                                  const Machine& machine,
                                  bool gpus,
                                  const std::optional<std::vector<HostEntry>>& hostfile,
                                  std::vector<std::string>& warnings) {
  if (hostfile) return hosts_of_file(options, *hostfile);
  std::vector<HostSlots> here = hosts_of_machine(options, machine, gpus, warnings);
  const int nodes = options.num_nodes.value_or(1);
  if (options.no_ssh && !here.empty()) return like_nodes(here.front(), nodes);
  if (nodes > 1) {
    fail(ErrorCode::usage, "--num_nodes {}: more nodes need a hostfile (-H FILE), or --no_ssh",
         nodes);
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
           "--launcher local: host \"{}\" is another machine; --launcher ssh reaches it, and local "
           "runs on localhost or {}",
           host.host, machine.host_name);
    }
    if (!own || options.force_multi) continue;
    if (here != nullptr) {
      fail(ErrorCode::usage, "\"{}\" and \"{}\" are the same machine; keep one of them", here->host,
           host.host);
    }
    here = &host;
  }
  return remote;
}

/// The slots of this machine; null: it has no part in the job.
const std::vector<int>* slots_here(const Resources& resources) {
  const std::vector<HostSlots>& hosts = resources.plan.hosts();
  const auto& remote = resources.remote;
  const auto own = std::find(remote.begin(), remote.end(), false) - remote.begin();
  const auto node = static_cast<std::size_t>(resources.node_rank.value_or(static_cast<int>(own)));
  return node < hosts.size() ? &hosts[node].slots : nullptr;
}

/// How the user named slots; empty: not at all.
std::string typed_slots(const LaunchOptions& options, bool hostfile) {
  if (options.num_gpus) return fmt::format("--num_gpus {}", *options.num_gpus);
  if (!options.include.empty()) return "--include " + options.include;
  if (!options.exclude.empty()) return "--exclude " + options.exclude;
  return hostfile ? "hostfile " + options.hostfile.value_or(default_hostfile) : "";
}

/// GPUs of this machine that the ranks cannot use.
void check_idle_gpus(const std::string& typed, int gpus, std::vector<std::string>& warnings) {
  if (!typed.empty()) fail(ErrorCode::usage, "{}: {}", typed, unusable_gpus("this machine", gpus));
  warnings.push_back(
      fmt::format("the GPUs of this machine ({}) are not used: this dstrain is built without CUDA, "
                  "and one CPU rank runs (--device cpu says that this is meant)",
                  gpus));
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
    fail(ErrorCode::usage, "no slot is left to run on; --include or --exclude take them all away");
  }
}

const HostSlots& HostPlan::host_of(const RankPlace& place) const {
  return hosts_.at(static_cast<std::size_t>(place.node_rank));
}

int HostPlan::local_size(const RankPlace& place) const {
  return static_cast<int>(host_of(place).slots.size());
}

std::optional<std::vector<HostEntry>> find_hostfile(const LaunchOptions& options) {
  if (options.hostfile) return read_hostfile(*options.hostfile);
  std::error_code ignored;
  if (std::filesystem::exists(default_hostfile, ignored)) return read_hostfile(default_hostfile);
  return std::nullopt;
}

Resources resolve_resources(const LaunchOptions& options,
                            const Machine& machine,
                            const std::optional<std::vector<HostEntry>>& hostfile,
                            RankDevice rank_device) {
  check_conflicts(options);
  std::vector<std::string> warnings;
  const bool has_gpus = options.device != "cpu" && usable_gpus(machine) > 0;
  const bool gpus = has_gpus && rank_device == RankDevice::any;
  HostPlan plan(find_hosts(options, machine, gpus, hostfile, warnings));
  Resources resources{std::move(plan), {}, options.node_rank, std::move(warnings)};
  const std::vector<HostSlots>& hosts = resources.plan.hosts();
  if (resources.node_rank) {
    check_node_rank(*resources.node_rank, static_cast<int>(hosts.size()));
    resources.remote.assign(hosts.size(), false);
  } else {
    resources.remote = find_remote(options, hosts, machine);
  }
  const std::vector<int>* const own = slots_here(resources);
  if (own == nullptr || !has_gpus) return resources;
  if (!gpus) {
    check_idle_gpus(typed_slots(options, hostfile.has_value()), machine.gpus, resources.warnings);
  } else if (!machine.visible_gpus && !options.oversubscribe) {
    check_gpu_slots(*own, machine.gpus);
  }
  return resources;
}

std::string Resources::launcher() const {
  return std::find(remote.begin(), remote.end(), true) != remote.end() ? "ssh" : "local";
}

}  // namespace dstrain::launcher
