#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain {

/// Limit of hosts in a list, which is also SLURM's limit of nodes.
inline constexpr std::size_t listed_hosts_max = 65536;

/// Returns the hosts of a SLURM list (SLURM_JOB_NODELIST), in order and with repetitions:
/// "n[008-010,7]-ib[0-1],login". As in `scontrol show hostnames`, a bracket's numbers keep the
/// width of their range's first, and of several brackets in one name the last varies fastest, then
/// the first, the second and so on. Empty for a list without a name. The failure names the wrong
/// part: a bracket that is not closed, an invalid range, text after the last bracket (which SLURM
/// does not accept either), or more than listed_hosts_max hosts.
Result<std::vector<std::string>> expand_host_list(std::string_view list);

/// Returns the counts per node that SLURM writes beside such a list (SLURM_TASKS_PER_NODE), each at
/// least 1: 2, 2, 2, 1 for "2(x3),1". The failure names the error.
Result<std::vector<int>> expand_task_counts(std::string_view text);

}  // namespace dstrain
