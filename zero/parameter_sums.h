#pragma once
#include "runtime/tensor/buffer.h"
#include "zero/communication.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Sums over whole parameters for optimizers that need them (optim::Optimizer::sums()), wherever
/// their elements are updated. A step clears them and measures the host's sub-groups, then calls
/// host_is_done(), measures the device's, and calls add_up(), which sums over all ranks. For the
/// computing thread. All arguments must outlive it.
class ParameterSums {
 public:
  struct Memory {
    MemoryResource& device;
    MemoryResource& host;
  };
  /// `sums` for each parameter.
  ParameterSums(RankShards& shards,
                std::int64_t sums,
                Communication communication,
                Memory memory,
                StreamView stream);
  /// Bytes on the device. If needs_host(), the host takes as much again.
  static Bytes bytes(const FlatLayout& layout, std::int64_t sums);
  static bool needs_host(const ShardPlan& plan, DeviceKind device);

  /// The sums of a parameter, on the device that updates the sub-group: (sums, ops::norm_sum_numel)
  /// i64.
  [[nodiscard]] TensorView of(int parameter_number, const SubGroup& sub_group) const;
  void clear(StreamView stream) const;
  void host_is_done(StreamView stream) const;
  void add_up(StreamView stream) const;

 private:
  RankShards& shards_;
  std::int64_t sums_;
  Communication communication_;
  Buffer device_memory_;
  Buffer host_memory_;
  TensorView on_device_;  ///< (parameters, sums x ops::norm_sum_numel) i64
  TensorView on_host_;    ///< the same; empty if the host has none of its own
};

}  // namespace dstrain::zero
