#pragma once
#include <span>
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/shard_plan.h"

namespace dstrain::zero {

/// The shards of a rank that are in one memory, that of the device or that of the host: parameters
/// in the model's dtype, summed gradients and states in the dtypes of the plan, each flat. Shards
/// in other tiers are empty here.
class ResidentShards {
 public:
  enum class Location { device, host };
  struct Memory {
    MemoryResource& parameters;
    MemoryResource& gradients;
    MemoryResource& optimizer;
  };
  ResidentShards(const FlatLayout& layout,
                 const ShardPlan& plan,
                 Location location,
                 Memory memory,
                 StreamView stream);
  /// Bytes in `tier`; none for the disk's tier.
  static CategoryBytes bytes(const FlatLayout& layout, const ShardPlan& plan, MemoryTier tier);

  /// The parameters that the rank keeps of a segment.
  [[nodiscard]] TensorView parameters(SegmentId segment) const { return parameters_[segment]; }
  /// The rank's shard of a segment's summed gradients.
  [[nodiscard]] TensorView gradients(SegmentId segment) const { return gradients_[segment]; }
  /// The states of a sub-group.
  [[nodiscard]] std::span<const TensorView> states(SubGroupId sub_group) const {
    return states_[sub_group];
  }

 private:
  /// Tensors of one block, in order.
  class Tensors {
   public:
    Tensors(Bytes bytes, MemoryResource& memory, StreamView stream)
        : memory_(bytes, memory, stream) {}
    TensorView cut(DType dtype, std::int64_t numel);
    void add(DType dtype, std::int64_t numel) { views_.push_back(cut(dtype, numel)); }
    [[nodiscard]] const TensorView& operator[](SegmentId segment) const { return views_[segment]; }

   private:
    Buffer memory_;
    Bytes used_ = 0;
    TypedVector<SegmentId, TensorView> views_;
  };

  Tensors parameters_;  ///< per segment
  Tensors gradients_;   ///< per segment
  Tensors state_memory_;
  TypedVector<SubGroupId, std::vector<TensorView>> states_;
};

}  // namespace dstrain::zero
