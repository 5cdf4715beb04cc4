#pragma once
#include "runtime/device/device.h"
#include "runtime/device/memory_resource.h"

namespace dstrain {

/// Returns the host tier of data that is copied to a device and back in every step: pinned memory,
/// which a device copies while the host continues; if both share memory, any.
constexpr MemoryTier crossing_tier(DeviceKind kind) {
  return shares_host_memory(kind) ? MemoryTier::host : MemoryTier::pinned;
}

}  // namespace dstrain
