#pragma once
#include <cstdint>

#include "runtime/device/memory_resource.h"

namespace dstrain::zero {

/// Where a rank keeps what its device does not compute with just then. Whatever is not on the
/// device is offloaded: it comes and goes by copies, and no result depends on it.
struct Offload {
  /// The optimizer's states, the f32 masters and the gradients summed over ranks: they are updated
  /// where they lie, by the host. Needs a stage that shards them.
  MemoryTier optimizer = MemoryTier::device;
  /// Share of the elements for which that holds, in whole segments; the others stay (ZeRO-Offload++
  /// Twin-Flow).
  double optimizer_ratio = 1;
  /// The shards of stage 3, but not the persistent segments.
  MemoryTier parameters = MemoryTier::device;
};

}  // namespace dstrain::zero
