#pragma once
#include "runtime/device/host_ranges.h"

namespace dstrain::cuda {

/// By NVTX, whose header loads the library that NVTX_INJECTION64_PATH names, as Nsight's profilers
/// set it. Null: none is named, or the build has no such header.
HostRanges* nvtx_ranges();

}  // namespace dstrain::cuda
