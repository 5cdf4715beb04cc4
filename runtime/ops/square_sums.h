#pragma once
#include <cstdint>
#include <span>

#include "runtime/device/stream.h"

namespace dstrain::ops {

/// Elements whose squares are added into one partial sum.
inline constexpr std::int64_t square_sum_block = 64;

/// How many partial sums `numel` elements give.
constexpr std::int64_t square_sum_count(std::int64_t numel) {
  return (numel + square_sum_block - 1) / square_sum_block;
}

/// sums[i] = the sum of the squares of values [64 i, 64 i + 64), in double; the last block may be
/// short. The order of the additions is fixed (eight lanes, then a tree), and a product of two
/// floats is exact in double: the bits do not depend on instruction set or threads. `sums` holds
/// square_sum_count(values.size()) elements. Both on the stream's device. Asynchronous on `stream`.
void square_sums(std::span<const float> values, std::span<double> sums, StreamView stream);

}  // namespace dstrain::ops
