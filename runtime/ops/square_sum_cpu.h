#pragma once
#include <cstdint>

#include "runtime/base/exact_sum.h"

namespace dstrain::ops::cpu {

/// Most elements that sum_squares() takes at once.
inline constexpr std::int64_t square_chunk = 65'536;

/// The squares of `count` floats, added as add_squares() says. For kernels: on the calling thread.
ExactSum sum_squares(const float* values, std::int64_t count);

}  // namespace dstrain::ops::cpu
