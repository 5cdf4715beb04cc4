#pragma once
#include <cstddef>
#include <optional>

#include "runtime/base/function_ref.h"

namespace dstrain::checkpoint {

/// Gives out 0, 1, ... count - 1, each once, in this order; then nothing.
using Next = FunctionRef<std::optional<std::size_t>()>;

/// Calls `work` on up to `threads` threads, the calling one among them, which wait for disks more
/// than they compute. When it throws, nothing more is given out, and of what was thrown that of the
/// lowest number goes on to the caller: as if one thread had done all of it.
void share_out(std::size_t count, int threads, FunctionRef<void(Next)> work);

}  // namespace dstrain::checkpoint
