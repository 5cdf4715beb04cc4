#pragma once
#include <cstddef>
#include <optional>

#include "runtime/base/function_ref.h"

namespace dstrain::checkpoint {

/// Returns 0, 1, ... count - 1, each once, in this order; then nothing.
using Next = FunctionRef<std::optional<std::size_t>()>;

/// Calls `work` on up to `threads` threads, including the calling one; they wait for disks more
/// than they compute. If it throws, no more numbers are given out, and the exception of the lowest
/// number is thrown to the caller: as if one thread had done all of it.
void share_out(std::size_t count, int threads, FunctionRef<void(Next)> work);

}  // namespace dstrain::checkpoint
