#pragma once
#include <string_view>
#include <vector>

namespace dstrain::launcher {

/// Where one rank may run.
struct CoreBinding {
  int cores = 0;           ///< whole cores, or processors if the user listed them
  std::vector<int> cpus;   ///< processors, as the kernel numbers them
  std::vector<int> nodes;  ///< of memory: the one NUMA node of all cpus; empty: any
};

/// Shares the processors of this machine that this process may use among `local_size` ranks, in
/// the order of NUMA nodes: whole cores, with all their hardware threads; or, when `listed` is not
/// empty, those processors. Throws as check_can_bind_cores(), and Error{usage} for a
/// listed processor that is not there or may not be used.
std::vector<CoreBinding> bind_cores(const std::vector<int>& listed, int local_size);

/// Throws Error{config} without hwloc.
void check_can_bind_cores();

/// Parses "0,2-4,6", which must ascend without repetition. Throws Error{usage} for anything else.
std::vector<int> parse_core_list(std::string_view text);

/// The share of rank `local_rank` of `local_size` in `count` cores, as [begin, end) of their order:
/// equal shares; the remaining cores stay idle. With more ranks than cores, each gets one core, in
/// turn.
struct CoreShare {
  int begin = 0;
  int end = 0;
};
CoreShare share_of_cores(int count, int local_rank, int local_size);

}  // namespace dstrain::launcher
