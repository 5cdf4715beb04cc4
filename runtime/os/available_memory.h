#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/os/control_groups.h"

namespace dstrain {

/// A row of /proc/meminfo, "MemTotal"; none when it is not there.
std::optional<Bytes> memory_row(std::string_view meminfo, std::string_view row);

/// A control group that may have less than all of the machine's memory.
struct LimitedGroup {
  std::string directory;
  Bytes limit = 0;
  Bytes used = 0;  ///< without the page cache, which the kernel drops when memory is wanted
};

/// Those of this process, in versions 1 and 2, its own first.
std::vector<LimitedGroup> limited_groups(KernelText text);

/// What processes started now can have of the machine's memory. Page cache counts as available,
/// swap does not: a training that swaps stands still.
struct AvailableMemory {
  Bytes bytes = 0;
  std::string reason;  ///< "23.1 GiB of this machine's 31.4 GiB are available"
};

/// The least of what the machine has available and what each control group leaves; none when the
/// kernel does not say.
std::optional<AvailableMemory> available_memory(KernelText text);

/// Of this machine, for this process.
std::optional<AvailableMemory> available_memory();

}  // namespace dstrain
