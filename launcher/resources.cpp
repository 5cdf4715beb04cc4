#include "launcher/resources.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "launcher/host_name.h"
#include "launcher/selection.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

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
  if (options.num_nodes.value_or(1) > 1) {
    fail(ErrorCode::usage, "--num_nodes {}: more nodes need a hostfile (-H FILE)",
         *options.num_nodes);
  }
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

void check_local(const std::vector<HostSlots>& hosts, const Machine& machine) {
  for (const HostSlots& host : hosts) {
    if (!is_this_machine(host.host, machine.host_name)) {
      fail(ErrorCode::usage,
           "host \"{}\" is another machine, and launching on other machines is not supported yet; "
           "a hostfile may name localhost or {}",
           host.host, machine.host_name);
    }
  }
  if (hosts.size() > 1) {
    fail(ErrorCode::usage, "\"{}\" and \"{}\" are the same machine; keep one of them",
         hosts[0].host, hosts[1].host);
  }
}

void check_capacity(const LaunchOptions& options,
                    const Machine& machine,
                    const Resources& resources) {
  if (!resources.gpus || options.oversubscribe) return;
  for (const HostSlots& host : resources.plan.hosts()) {
    const int last = host.slots.back();
    if (last >= machine.gpus && !machine.visible_gpus) {
      fail(ErrorCode::usage,
           "slot {} of {}: {} devices are present (--oversubscribe runs more ranks than devices)",
           last, host.host, machine.gpus);
    }
  }
}

void warn_about_cores(const LaunchOptions& options, const Machine& machine, Resources& resources) {
  const int ranks = resources.plan.world_size();
  if (resources.gpus || options.oversubscribe || ranks <= machine.cores) return;
  resources.warnings.push_back(
      fmt::format("{} CPU ranks share {} cores; --oversubscribe says that this is meant", ranks,
                  machine.cores));
}

}  // namespace

std::optional<std::vector<HostEntry>> find_hostfile(const LaunchOptions& options) {
  if (options.hostfile) return read_hostfile(*options.hostfile);
  std::error_code ignored;
  if (std::filesystem::exists(default_hostfile, ignored)) return read_hostfile(default_hostfile);
  return std::nullopt;
}

Resources resolve_resources(const LaunchOptions& options,
                            const Machine& machine,
                            const std::optional<std::vector<HostEntry>>& hostfile) {
  check_conflicts(options);
  const bool hidden = machine.visible_gpus && machine.visible_gpus->empty();
  const bool gpus = options.device != "cpu" && machine.gpus > 0 && !hidden;
  std::vector<std::string> warnings;
  HostPlan plan(hostfile ? hosts_of_file(options, *hostfile)
                         : hosts_of_machine(options, machine, gpus, warnings));
  Resources resources{std::move(plan), gpus, std::move(warnings)};
  check_local(resources.plan.hosts(), machine);
  check_capacity(options, machine, resources);
  warn_about_cores(options, machine, resources);
  return resources;
}

}  // namespace dstrain::launcher
