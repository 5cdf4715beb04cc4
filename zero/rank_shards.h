#pragma once
#include <memory>
#include <optional>
#include <span>

#include "runtime/device/cpu_stream.h"
#include "runtime/profile/timeline.h"
#include "zero/disk_shards.h"
#include "zero/lease_use.h"
#include "zero/resident_shards.h"
#include "zero/shard_plan.h"
#include "zero/stage_policy.h"
#include "zero/staging_ring.h"

namespace dstrain::zero {

/// A rank's share of parameters, summed gradients and optimizer states, each in the tier that its
/// ShardPlan says. Callers borrow them from here, wherever they are. For the computing thread;
/// early updates borrow on the host queue. All arguments must outlive it.
class RankShards {
  /// The lender of a lease; null in a lease that was moved from.
  struct NotOwned {
    void operator()(RankShards* /*shards*/) const noexcept {}
  };
  using Lender = std::unique_ptr<RankShards, NotOwned>;

 public:
  struct Memory {
    ResidentShards::Memory device;
    ResidentShards::Memory host;
    MemoryResource& staging;  ///< of the host, for transfers to and from a device
    DiskShards::Folders disks{};
  };
  RankShards(const FlatLayout& layout,
             const ShardPlan::Options& options,
             int rank,
             Memory memory,
             Streams streams,
             profile::Timeline* timeline = nullptr);
  /// Bytes of host memory for parameters that the host updates and a device keeps.
  static Bytes staging_bytes(const FlatLayout& layout, const ShardPlan& plan, DeviceKind device);

  [[nodiscard]] const FlatLayout& layout() const { return layout_; }
  [[nodiscard]] const ShardPlan& plan() const { return plan_; }
  [[nodiscard]] const Offload& offload() const { return options_.offload; }
  [[nodiscard]] int rank() const { return rank_; }
  /// Whether this rank updates only its shards.
  [[nodiscard]] bool shards_updates() const { return stage_policy(options_.stage).shard_optimizer; }
  /// The parameters that the rank keeps of a segment; empty if they are on a disk.
  [[nodiscard]] TensorView parameters(SegmentId segment) const;
  /// The rank's shard of these.
  [[nodiscard]] TensorView own_parameters(SegmentId segment) const;
  /// The rank's shard of summed gradients; empty if it is not kept or is on a disk.
  [[nodiscard]] TensorView gradients(SegmentId segment) const;
  /// Null if nothing is on a disk.
  [[nodiscard]] DiskShards* disk() { return disk_ ? &*disk_ : nullptr; }
  /// Whether the host's memory is not the device's.
  [[nodiscard]] bool host_is_apart() const { return streams_.compute.device() != Device{}; }
  /// The stream for work with data on `device`: the computing stream, or an inline one of the host.
  [[nodiscard]] StreamView stream_of(Device device);
  /// Waits for these streams.
  void synchronize();

  /// The elements of a segment's parameters that this rank updates: its shard, or all if every rank
  /// updates all. Empty for LeaseUse::measure of a segment on a disk.
  class ParameterLease {
   public:
    ParameterLease(ParameterLease&& other) noexcept = default;
    ParameterLease& operator=(ParameterLease&&) = delete;
    ParameterLease(const ParameterLease&) = delete;
    ParameterLease& operator=(const ParameterLease&) = delete;
    /// Gives them back unchanged if give_back() was not called.
    ~ParameterLease();
    [[nodiscard]] TensorView values() const { return values_; }
    /// Gives them back. They count as changed if the use changes parameters. A segment on a disk is
    /// written once work on its stream is done.
    void give_back();

   private:
    friend class RankShards;
    ParameterLease(RankShards& shards, SegmentId segment, LeaseUse use);
    void give_back(bool changed);
    Lender shards_;  ///< null: given back
    SegmentId segment_;
    LeaseUse use_;
    TensorView values_;
  };

  /// A sub-group with its parameters.
  class SubGroupLease {
   public:
    SubGroupLease(SubGroupLease&& other) noexcept = default;
    SubGroupLease& operator=(SubGroupLease&&) = delete;
    SubGroupLease(const SubGroupLease&) = delete;
    SubGroupLease& operator=(const SubGroupLease&) = delete;
    /// Gives it back as unused if give_back() was not called.
    ~SubGroupLease();
    /// Gives it back once work on `stream` is done. Unless the use is LeaseUse::read, its values
    /// are new.
    void give_back();

    TensorView parameters;  ///< as units see them; empty to measure a segment on a disk
    TensorView exact;       ///< updated by the optimizer: the master, or else `parameters`
    std::span<const TensorView> states;  ///< of the optimizer
    TensorView gradients;                ///< summed
    StreamView stream;  ///< for work with these, but not for device parameters that are only read

   private:
    friend class RankShards;
    SubGroupLease(RankShards& shards, SubGroupId sub_group, LeaseUse use, StreamView on)
        : stream(on), shards_(&shards), sub_group_(sub_group), use_(use) {}
    Lender shards_;  ///< null: given back
    SubGroupId sub_group_;
    LeaseUse use_;
    TensorView target_{};  ///< of `parameters`, when these are staged
    StagingBuffer* upload_ = nullptr;
  };

  ParameterLease lend(SegmentId segment, LeaseUse use) { return {*this, segment, use}; }
  /// `parameters` is the lease of the sub-group's segment; both are for the same use. `gradients`:
  /// of the last micro step, for an early update.
  SubGroupLease lend(SubGroupId sub_group,
                     const ParameterLease& parameters,
                     TensorView gradients = {});

  /// Later work on the compute stream runs after all copies to the device that were begun so far.
  void follow_uploads() const;

 private:
  [[nodiscard]] const ResidentShards& resident(MemoryTier tier) const {
    return on_host(tier) ? host_ : device_;
  }
  [[nodiscard]] StreamView stream_of(const SubGroup& sub_group, LeaseUse use);
  void stage_parameters(SubGroupLease& lease);
  void return_sub_group(SubGroupId sub_group, LeaseUse use);

  const FlatLayout& layout_;
  ShardPlan::Options options_;
  int rank_;
  ShardPlan plan_;
  Streams streams_;
  profile::Timeline* timeline_;  ///< null: nothing is recorded
  CpuStream host_stream_{CpuStream::Mode::inline_on_caller};
  CpuStream queue_stream_{CpuStream::Mode::inline_on_caller};  ///< of the host's queue
  HostQueue inline_{HostQueue::Mode::inline_on_caller};        ///< waits for the ring
  ResidentShards device_;
  ResidentShards host_;
  std::optional<DiskShards> disk_;
  std::optional<StagingRing> uploads_;
};

}  // namespace dstrain::zero
