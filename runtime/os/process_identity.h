#pragma once
#include <cstdint>

namespace dstrain {

/// Names one process for good: a pid alone is reused. Plain data; may lie in shared memory.
struct ProcessIdentity {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;    ///< clock ticks from boot to its start; 0: not known
  std::uint64_t pid_namespace = 0;  ///< the inode of its pid namespace
};

/// The calling process.
ProcessIdentity this_process();

/// Whether `process` has ended (a zombie has). False when that is not known: for a process of
/// another pid namespace, which cannot be seen from here, or while no descriptor is free.
bool has_ended(const ProcessIdentity& process);

}  // namespace dstrain
