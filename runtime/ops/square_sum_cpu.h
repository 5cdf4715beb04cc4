#pragma once
#include <cstdint>

#include "runtime/numeric/exact_sum.h"

namespace dstrain::ops::cpu {

/// Most elements that sum_squares() accepts at once.
inline constexpr std::int64_t square_chunk = 65'536;

/// Sums the squares of `count` floats, BFloat16 or Float16 as add_squares() does. For kernels: runs
/// on the calling thread.
template <class T>
ExactSum sum_squares(const T* values, std::int64_t count);

}  // namespace dstrain::ops::cpu
