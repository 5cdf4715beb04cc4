#pragma once
#include "runtime/device/device.h"
#include "runtime/device/memory_resource.h"

namespace dstrain {

/// Where the host keeps what goes to a device and comes from it in every step: in pinned memory,
/// which a device copies while the host goes on; where both are one, in what there is.
constexpr MemoryTier crossing_tier(DeviceKind kind) {
  return shares_host_memory(kind) ? MemoryTier::host : MemoryTier::pinned;
}

}  // namespace dstrain
