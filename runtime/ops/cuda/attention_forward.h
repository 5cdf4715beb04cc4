#pragma once
#include "runtime/ops/attention_scratch.h"
#include "runtime/ops/cuda/attention_rows.h"
#include "runtime/ops/cuda/attention_rules.h"
#include "runtime/ops/cuda/dropout_mask.h"

namespace dstrain::ops::gpu {

/// Arguments of the forward kernels.
template <class T>
struct AttentionForward {
  AttentionSizes sizes;
  Rotary rotary;
  float query_factor;  ///< scales scores: log2(e) / divisor
  Sight sight;
  DistanceBias bias;
  const T* bias_table;
  DropoutMask mask;
  HeadMatrix<const T> query;
  HeadMatrix<const T> key;
  HeadMatrix<const T> value;
  HeadMatrix<T> output;
  float* logsumexp;
};

/// The forward pass of 16-bit dtypes on tensor cores. With a rotary embedding, queries and keys are
/// first rotated into `turned`.
template <class T>
void launch_half_forward(const AttentionForward<T>& forward,
                         const TurnedHeads& turned,
                         StreamView stream);

}  // namespace dstrain::ops::gpu
