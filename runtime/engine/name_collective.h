#pragma once
#include "runtime/base/error.h"
#include "runtime/rank/progress_page.h"

namespace dstrain::engine {

/// The error that has ended a rank, with the number of the collective that it failed in, as the
/// launcher numbers them when it says who hangs: "collective 7029: all_reduce of 4 f32 on rank 0
/// timed out". As it is where it comes from none.
Error name_collective(const Error& error, const ProgressPage& progress);

}  // namespace dstrain::engine
