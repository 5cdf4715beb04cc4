#pragma once
#include <span>

#include "runtime/tensor/bfloat16.h"

namespace dstrain::bench {

/// What an update works on, of equal sizes.
struct UpdatedArrays {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::span<float> exp_avg;
  std::span<float> exp_avg_sq;
  std::span<BFloat16> working;  ///< or empty
};

/// Reads and writes what ops::update() of AdamW does, in the same chunks on the same threads, and
/// computes nothing: values change places. One bitwise or keeps the fourth input from being left
/// unread.
void move_like_adamw(const UpdatedArrays& arrays);

}  // namespace dstrain::bench
