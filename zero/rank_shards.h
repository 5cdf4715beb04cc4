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

/// What a rank keeps of parameters, summed gradients and optimizer states, each in the tier that
/// its ShardPlan says: who works with it borrows it from here, wherever it lies. The thread that
/// computes may, and the host's queue what is updated early. All must outlive it.
class RankShards {
  /// Who has lent something; a lease that was moved from has none.
  struct NotOwned {
    void operator()(RankShards* /*shards*/) const noexcept {}
  };
  using Lender = std::unique_ptr<RankShards, NotOwned>;

 public:
  struct Memory {
    ResidentShards::Memory device;
    ResidentShards::Memory host;
    MemoryResource& staging;  ///< of the host, for what crosses between it and a device
    DiskShards::Folders disks{};
  };
  RankShards(const FlatLayout& layout,
             const ShardPlan::Options& options,
             int rank,
             Memory memory,
             Streams streams,
             profile::Timeline* timeline = nullptr);
  /// Of the host, for parameters that the host updates and a device keeps.
  static Bytes staging_bytes(const FlatLayout& layout, const ShardPlan& plan, DeviceKind device);

  [[nodiscard]] const FlatLayout& layout() const { return layout_; }
  [[nodiscard]] const ShardPlan& plan() const { return plan_; }
  [[nodiscard]] const Offload& offload() const { return options_.offload; }
  [[nodiscard]] int rank() const { return rank_; }
  /// Whether a rank updates its shards alone.
  [[nodiscard]] bool shards_updates() const { return stage_policy(options_.stage).shard_optimizer; }
  /// All that the rank keeps of a segment's parameters; empty when it lies on a disk.
  [[nodiscard]] TensorView parameters(SegmentId segment) const;
  /// Of that, the shard of the rank.
  [[nodiscard]] TensorView own_parameters(SegmentId segment) const;
  /// The shard of summed gradients that is kept; empty when it is nowhere, or on a disk.
  [[nodiscard]] TensorView gradients(SegmentId segment) const;
  /// Null when nothing lies on a disk.
  [[nodiscard]] DiskShards* disk() { return disk_ ? &*disk_ : nullptr; }
  /// Whether the host's memory is another than the device's.
  [[nodiscard]] bool host_is_apart() const { return streams_.compute.device() != Device{}; }
  /// Where work with what lies on `device` goes: the stream that computes, or one of the host,
  /// inline.
  [[nodiscard]] StreamView stream_of(Device device);
  /// Waits for these streams.
  void synchronize();

  /// What this rank updates of a segment's parameters: its shard, or all of it when every rank
  /// updates all; nothing to measure what lies on a disk.
  class ParameterLease {
   public:
    ParameterLease(ParameterLease&& other) noexcept = default;
    ParameterLease& operator=(ParameterLease&&) = delete;
    ParameterLease(const ParameterLease&) = delete;
    ParameterLease& operator=(const ParameterLease&) = delete;
    /// Gives them back unchanged, unless they were.
    ~ParameterLease();
    [[nodiscard]] TensorView values() const { return values_; }
    /// Gives them back: they are new if that is what they were lent for. What lies on a disk goes
    /// there once work on the segment's stream is done.
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

  /// A sub-group, with the parameters that it belongs to.
  class SubGroupLease {
   public:
    SubGroupLease(SubGroupLease&& other) noexcept = default;
    SubGroupLease& operator=(SubGroupLease&&) = delete;
    SubGroupLease(const SubGroupLease&) = delete;
    SubGroupLease& operator=(const SubGroupLease&) = delete;
    /// Gives it back as if nothing had been done with it, unless it was.
    ~SubGroupLease();
    /// Gives it back once work on `stream` is done: what was not lent to be read is new.
    void give_back();

    TensorView parameters;  ///< as units see them; empty to measure what lies on a disk
    TensorView exact;       ///< what is updated: the master, or where there is none `parameters`
    std::span<const TensorView> states;  ///< of the optimizer
    TensorView gradients;                ///< summed
    StreamView stream;                   ///< where they are worked with, but for reading parameters

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

  /// What the compute stream is given from now on runs after all copies to the device that were
  /// begun so far.
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
