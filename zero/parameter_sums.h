#pragma once
#include "runtime/tensor/buffer.h"
#include "zero/communication.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Sums over each parameter, wherever its elements are updated, for optimizers that take them
/// (optim::Optimizer::sums()). In a step they are cleared; what the host updates is measured, then
/// host_is_done(), then what the device updates; then add_up() makes them those of all ranks. For
/// the computing thread. All must outlive it.
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
  /// Of the device; of the host as much again where it updates what a device computes with.
  static Bytes bytes(const FlatLayout& layout, std::int64_t sums);
  static bool needs_host(const ShardPlan& plan, DeviceKind device);

  /// Those of a parameter, by its number, where a sub-group is updated: (sums, ops::norm_sum_numel)
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
  TensorView on_host_;    ///< likewise; empty where the host has none of its own
};

}  // namespace dstrain::zero
