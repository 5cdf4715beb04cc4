#pragma once
#include "runtime/device/memory_resource.h"

namespace dstrain::test {

inline constexpr MemoryTier device = MemoryTier::device;
inline constexpr MemoryTier host = MemoryTier::host;
inline constexpr MemoryTier nvme = MemoryTier::nvme;

}  // namespace dstrain::test
