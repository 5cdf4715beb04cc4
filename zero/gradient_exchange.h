#pragma once
#include "runtime/config/state_precision.h"
#include "runtime/tensor/buffer.h"
#include "zero/communication.h"
#include "zero/flat_layout.h"

namespace dstrain::zero {

/// Sums gradients over the ranks in the dtype of communication. Gradients are rounded to the dtype
/// in which they are kept, if they are not yet, and then to that of communication; the communicator
/// sums them, and the result is converted back. Each stage therefore rounds alike, whether it keeps
/// gradients before they are summed or after. One rank sends nothing. Asynchronous on the stream of
/// the communication; the views are of the computing device.
class GradientExchange {
 public:
  /// `summed`: the dtype of the gradients to be summed, f32 or that in which gradients are kept.
  GradientExchange(const FlatLayout& layout,
                   const config::StatePrecision& precision,
                   DType summed,
                   Communication communication,
                   MemoryResource& buffers,
                   StreamView stream);
  /// Bytes on the device: a rounded copy of the largest segment, if gradients are rounded.
  static Bytes bytes(const FlatLayout& layout,
                     const config::StatePrecision& precision,
                     DType summed);

  /// Sums `whole`, the gradients of a segment, and writes this rank's shard of the sum to `shard`,
  /// which may have any dtype and may be this rank's part of `whole`. Overwrites `whole`.
  void reduce_scatter(TensorView whole, TensorView shard) const;
  /// Replaces `values` by their sum over the ranks.
  void all_reduce(TensorView values) const;

 private:
  [[nodiscard]] TensorView sent(TensorView values) const;

  Communication communication_;
  DType sent_;
  DType rounded_;  ///< rounded to, before they are sent
  Buffer memory_;  ///< of the rounded copy; empty if gradients are sent as they are
};

}  // namespace dstrain::zero
