#pragma once
#include <string_view>
#include <vector>

namespace dstrain::launcher {

/// Where one rank may run.
struct CoreBinding {
  int cores = 0;           ///< whole cores, or processors when the user listed these
  std::vector<int> cpus;   ///< processors, as the kernel numbers them
  std::vector<int> nodes;  ///< the memory's: the one NUMA node they all lie in; none: any
};

/// Shares the processors of this machine that this process may use among `local_size` ranks, in
/// the order of NUMA nodes: whole cores, with all their hardware threads; or, when `listed` is not
/// empty, those processors. Throws as check_can_bind_cores(), and Error{usage} for a
/// listed processor that is not there or may not be used.
std::vector<CoreBinding> bind_cores(const std::vector<int>& listed, int local_size);

/// Throws Error{config} without hwloc.
void check_can_bind_cores();

/// "0,2-4,6" as numbers: ascending, none twice. Throws Error{usage} for anything else.
std::vector<int> parse_core_list(std::string_view text);

/// The share of rank `local_rank` of `local_size` in `count` cores, as [begin, end) of their order:
/// equal shares, what is left over idle. More ranks than cores: one core each, in turns.
struct CoreShare {
  int begin = 0;
  int end = 0;
};
CoreShare share_of_cores(int count, int local_rank, int local_size);

}  // namespace dstrain::launcher
