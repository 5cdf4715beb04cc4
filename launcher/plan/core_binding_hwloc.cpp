#include <cerrno>
#include <memory>

#include <hwloc.h>

#include <fmt/ranges.h>

#include "launcher/plan/core_binding.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const noexcept { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

/// Loads the processors that this process may use; no devices, so that no driver is touched.
Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) fail(ErrorCode::io, "hwloc cannot be initialised");
  Topology topology(raw);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  if (hwloc_topology_load(raw) != 0) fail(ErrorCode::io, "hwloc cannot read the topology");
  if (hwloc_topology_is_thissystem(raw) == 0) return topology;
  const Bitmap usable(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(raw, usable.get(), HWLOC_CPUBIND_THREAD) != 0 ||
      hwloc_topology_restrict(raw, usable.get(), 0) != 0) {
    fail_errno(errno, "hwloc: find the usable processors");
  }
  return topology;
}

std::vector<int> numbers_of(hwloc_const_bitmap_t set) {
  std::vector<int> numbers;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) numbers.push_back(i);
  return numbers;
}

/// One entry per core, in the topology's order, which puts near cores together.
std::vector<std::vector<int>> whole_cores(hwloc_topology* topology) {
  std::vector<std::vector<int>> cores;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr) {
    cores.push_back(numbers_of(core->cpuset));
  }
  return cores;
}

/// One entry per processor that the user listed, in that order.
std::vector<std::vector<int>> listed_cores(hwloc_topology* topology,
                                           const std::vector<int>& listed) {
  std::vector<std::vector<int>> cores;
  for (const int cpu : listed) {
    if (hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(cpu)) == nullptr) {
      const auto usable = numbers_of(hwloc_topology_get_topology_cpuset(topology));
      fail(ErrorCode::usage,
           "--bind_core_list: core {} is not one of the cores that this process may use: {}", cpu,
           fmt::join(usable, ","));
    }
    cores.push_back({cpu});
  }
  return cores;
}

std::vector<int> nodes_of(hwloc_topology* topology, const std::vector<int>& cpus) {
  std::vector<int> nodes;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    for (const int cpu : cpus) {
      if (hwloc_bitmap_isset(node->cpuset, static_cast<unsigned>(cpu)) == 0) continue;
      nodes.push_back(static_cast<int>(node->os_index));
      break;
    }
  }
  return nodes;
}

}  // namespace

void check_can_bind_cores() {}

std::vector<CoreBinding> bind_cores(const std::vector<int>& listed, int local_size) {
  const Topology topology = load_topology();
  std::vector<std::vector<int>> cores =
      listed.empty() ? whole_cores(topology.get()) : listed_cores(topology.get(), listed);
  if (cores.empty()) fail(ErrorCode::io, "hwloc finds no core that this process may use");
  const int nodes = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE);
  std::vector<CoreBinding> bindings;
  for (int rank = 0; rank < local_size; ++rank) {
    const CoreShare share = share_of_cores(static_cast<int>(cores.size()), rank, local_size);
    CoreBinding binding{.cores = share.end - share.begin, .cpus = {}, .nodes = {}};
    for (int i = share.begin; i < share.end; ++i) {
      const std::vector<int>& cpus = cores[static_cast<std::size_t>(i)];
      binding.cpus.insert(binding.cpus.end(), cpus.begin(), cpus.end());
    }
    binding.nodes = nodes_of(topology.get(), binding.cpus);
    if (binding.nodes.size() != 1 || nodes == 1) binding.nodes.clear();
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

}  // namespace dstrain::launcher
