#pragma once
#include <cstdint>

namespace dstrain {

/// Identifies one process uniquely; a pid alone is reused. Plain data; may be in shared memory.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;    ///< clock ticks from boot to its start; 0: unknown
  std::uint64_t pid_namespace = 0;  ///< inode of its pid namespace
};

/// Returns the identity of the calling process.
ProcessIdentity this_process();

/// Whether `process` has ended (a zombie has). False if that is unknown: for a process of another
/// pid namespace, which is invisible here, or while no descriptor is free.
bool has_ended(const ProcessIdentity& process);

}  // namespace dstrain
