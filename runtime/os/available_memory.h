#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/os/control_groups.h"

namespace dstrain {

/// Returns a row of /proc/meminfo, "MemTotal"; none if it is missing.
std::optional<Bytes> memory_row(std::string_view meminfo, std::string_view row);

/// A control group with a limit, which may be less than the machine's memory.
struct LimitedGroup {
  std::string directory;
  Bytes limit = 0;
  Bytes used = 0;  ///< without the page cache, which the kernel drops when memory is needed
};

/// Returns the groups of this process, in versions 1 and 2, its own first.
std::vector<LimitedGroup> limited_groups(KernelText text);

/// The memory of the machine that processes started now can use. Page cache counts as available;
/// swap does not, because a training that swaps makes no progress.
struct AvailableMemory {
  Bytes bytes = 0;
  std::string reason;  ///< "23.1 GiB of this machine's 31.4 GiB are available"
};

/// Returns the minimum of the machine's available memory and the rest that each control group
/// allows; none if the kernel does not report it.
std::optional<AvailableMemory> available_memory(KernelText text);

/// Returns that of this machine, for this process.
std::optional<AvailableMemory> available_memory();

}  // namespace dstrain
