#pragma once
#include "runtime/base/function_ref.h"

namespace dstrain::launcher {

/// Runs `body`, an agent's, in a child process and returns its exit status, or ends by the signal
/// that ended it. What the child has left behind when it dies, in whatever session, is killed
/// before. When this process dies the child gets SIGTERM. Call it from a single-threaded process.
int guard(FunctionRef<int()> body);

}  // namespace dstrain::launcher
