#pragma once
#include <cstdint>

#include "runtime/numeric/exact_sum.h"

namespace dstrain::ops::cpu {

/// Most elements that sum_squares() takes at once.
inline constexpr std::int64_t square_chunk = 65'536;

/// The squares of `count` floats, BFloat16 or Float16, added as add_squares() says. For kernels: on
/// the calling thread.
template <class T>
ExactSum sum_squares(const T* values, std::int64_t count);

}  // namespace dstrain::ops::cpu
