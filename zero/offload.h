#pragma once
#include <cstdint>

#include "runtime/device/memory_resource.h"

namespace dstrain::zero {

/// Where a rank keeps what its device does not compute with just then. Whatever is not on the
/// device is offloaded: it comes and goes by copies, and no result depends on it.
struct Offload {
  /// The optimizer's states, the f32 masters and the gradients summed over ranks: they are updated
  /// by the host. Needs a stage that shards them; nvme needs stage 3.
  MemoryTier optimizer = MemoryTier::device;
  /// Share of the elements for which that holds, in whole segments; the others stay (ZeRO-Offload++
  /// Twin-Flow).
  double optimizer_ratio = 1;
  /// The shards of stage 3, but not the persistent segments.
  MemoryTier parameters = MemoryTier::device;

  // With nvme, all through buffers in `staging`:
  MemoryTier staging = MemoryTier::host;
  std::int64_t run_numel = std::int64_t{1} << 22;  ///< most elements that are updated at once
  int optimizer_buffers = 4;                       ///< of one run's gradients and states
  bool read_ahead = true;                          ///< the next run's, while one is updated
  bool write_behind = true;                        ///< the last run's, likewise
  int parameter_buffers = 5;                       ///< of one segment's shard
  std::int64_t parameters_in_host = 0;  ///< so many elements of the shards stay in `staging`
};

constexpr bool on_host(MemoryTier tier) {
  return tier == MemoryTier::host || tier == MemoryTier::pinned;
}

}  // namespace dstrain::zero
