#pragma once
#include "runtime/base/error.h"
#include "runtime/rank/progress_page.h"

namespace dstrain::engine {

/// Adds to the error that ended a rank the number of the collective that failed, as the launcher
/// counts it when it reports a hang: "collective 7029: all_reduce of 4 f32 on rank 0 timed out".
/// Other errors are returned unchanged.
Error name_collective(const Error& error, const ProgressPage& progress);

}  // namespace dstrain::engine
