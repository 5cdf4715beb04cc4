#pragma once
#include <cstdint>

#include "runtime/ops/adamw.h"

namespace dstrain::bench {

/// Reads and writes what ops::adamw does, in the same chunks on the same threads, and computes
/// nothing: values change places. One bitwise or keeps the fourth input from being left unread.
void move_like_adamw(const ops::AdamWRange& range);

}  // namespace dstrain::bench
