#pragma once
#include "runtime/ops/cuda/gpu.h"

namespace dstrain::ops::gpu {

/// Sums over the threads of a block, in shared memory. The order depends only on the number of
/// threads, a multiple of 32.
template <class T, int threads>
struct BlockSum {
  T of_warp[threads / warp_threads];

  /// Returns the sum to all threads of the block, which must all call.
  DSTRAIN_DEVICE T add(T value) {
    for (int lanes = warp_threads / 2; lanes > 0; lanes /= 2) value += shuffle_xor(value, lanes);
    if (thread() % warp_threads == 0) of_warp[thread() / warp_threads] = value;
    sync();
    T sum = 0;
    for (const T part : of_warp) sum += part;
    sync();  // before the next call overwrites of_warp
    return sum;
  }
};

}  // namespace dstrain::ops::gpu
