#pragma once
#include "runtime/device/host_ranges.h"

namespace dstrain::cuda {

/// Returns ranges for NVTX, whose header loads the library named by NVTX_INJECTION64_PATH, as
/// Nsight's profilers set it. Null if none is named, or if the build has no such header.
HostRanges* nvtx_ranges();

}  // namespace dstrain::cuda
