#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain {

/// More hosts than a list may stand for: SLURM itself takes no more nodes.
inline constexpr std::size_t listed_hosts_max = 65536;

/// The hosts of a list as SLURM writes it (SLURM_JOB_NODELIST), in its order and as often as they
/// stand there: "n[008-010,7]-ib[0-1],login". As `scontrol show hostnames`: a bracket's numbers
/// keep the width of their range's first, and of several brackets of one name the last varies
/// fastest, then the first, the second and so on. None for a list without a name. The failure says
/// which part is wrong: a bracket that is not closed, no range of numbers, text behind the last
/// bracket (which SLURM does not take either), or more than listed_hosts_max hosts.
Result<std::vector<std::string>> expand_host_list(std::string_view list);

/// The counts per node that SLURM writes beside such a list (SLURM_TASKS_PER_NODE), each at least
/// 1: "2(x3),1" for 2, 2, 2, 1. The failure says what is wrong.
Result<std::vector<int>> expand_task_counts(std::string_view text);

}  // namespace dstrain
