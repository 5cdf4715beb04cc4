#pragma once
#include "runtime/config/state_precision.h"
#include "runtime/tensor/buffer.h"
#include "zero/communication.h"
#include "zero/flat_layout.h"

namespace dstrain::zero {

/// Sums gradients over the ranks in the dtype of communication: they are rounded to what gradients
/// are kept in, if they are not yet, and then to that, summed as the communicator sums it, and come
/// back from it. So each stage rounds alike, whether it keeps gradients before they are summed or
/// after. One rank has nothing to send. Asynchronous on the communication's stream; views of the
/// computing device.
class GradientExchange {
 public:
  /// `summed`: the dtype of what is summed, f32 or that in which gradients are kept.
  GradientExchange(const FlatLayout& layout,
                   const config::StatePrecision& precision,
                   DType summed,
                   Communication communication,
                   MemoryResource& buffers,
                   StreamView stream);
  /// Of the device: of the largest segment what is rounded.
  static Bytes bytes(const FlatLayout& layout,
                     const config::StatePrecision& precision,
                     DType summed);

  /// shard = this rank's part of the sum of `whole`, a segment's gradients, whose memory may be
  /// used; `shard` may be of any dtype, and this rank's part of `whole`.
  void reduce_scatter(TensorView whole, TensorView shard) const;
  /// values = their sum.
  void all_reduce(TensorView values) const;

 private:
  [[nodiscard]] TensorView sent(TensorView values) const;

  Communication communication_;
  DType sent_;
  DType rounded_;  ///< before that
  Buffer memory_;  ///< of those; empty where gradients are sent as they are
};

}  // namespace dstrain::zero
