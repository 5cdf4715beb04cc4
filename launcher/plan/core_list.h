#pragma once
#include <string_view>
#include <vector>

namespace dstrain::launcher {

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
