#pragma once
#include <optional>
#include <span>
#include <vector>

#include "offload/record_swap.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/numeric/exact_sum.h"
#include "zero/lease_use.h"
#include "zero/shard_plan.h"
#include "zero/state_record.h"
#include "zero/swap_folder.h"
#include "zero/use_order.h"

namespace dstrain::zero {

/// The shards of a rank that are on disks, read into host buffers for use. The parameters of a
/// segment are one record of a swap file; the states of a sub-group with their gradients are one
/// record of another.
///
/// Gradients are written as they are summed. A step reads the next sub-group while it updates one,
/// and writes only the states back. A sub-group may also be updated as soon as its gradients are
/// complete. Its new states then count only after accept(); before that, a step can repeat the
/// update from the old ones (EarlyUpdate::revocable keeps both, in two records). All arguments must
/// outlive it. Parameters are thread-safe as RecordSwap is; the rest is for one thread at a time.
class DiskShards {
 public:
  struct Folders {
    const SwapFolder* parameters = nullptr;  ///< null: none are on a disk
    const SwapFolder* optimizer = nullptr;
  };
  DiskShards(const FlatLayout& layout,
             const ShardPlan& plan,
             const Offload& offload,
             Folders folders,
             StreamView stream);
  /// Bytes in files, by category.
  static CategoryBytes file_bytes(const FlatLayout& layout,
                                  const ShardPlan& plan,
                                  const Offload& offload);
  /// Bytes of host buffers.
  static Bytes buffer_bytes(const FlatLayout& layout,
                            const ShardPlan& plan,
                            const Offload& offload);

  /// Begins to read the parameters of a segment if a buffer is free.
  void expect_parameters(SegmentId segment);
  /// Returns the buffer into which they are being read; call wait_for_parameters() before use.
  [[nodiscard]] HostView take_parameters(SegmentId segment);
  void wait_for_parameters(SegmentId segment) { parameters_->wait(record_of(segment)); }
  /// Returns a buffer for new values.
  [[nodiscard]] HostView replace_parameters(SegmentId segment);
  /// Returns the buffer of take_parameters() or replace_parameters(). Changed values are written.
  void release_parameters(SegmentId segment, bool changed);

  /// A sub-group in memory.
  struct LoadedSubGroup {
    std::span<const TensorView> states;
    TensorView gradients;  ///< for an update; empty if none are kept beside the states
  };
  /// Loads a sub-group until release(), which writes the states unless they were only read.
  /// LeaseUse::replace must be the first use of each sub-group.
  LoadedSubGroup acquire(SubGroupId sub_group, LeaseUse use);
  void release(SubGroupId sub_group, LeaseUse use);

  /// Begins a micro step. `early`: in the last one, sub-groups are updated as their gradients come.
  void begin(engine::MicroStep micro_step, bool early);
  [[nodiscard]] bool updates_early() const { return early_ && micro_step_.last(); }
  /// Adds the gradients of a sub-group, summed over the ranks, to those of earlier micro steps.
  /// `stream` is inline: the values may change once this returns. Throws Error{io}.
  void add(SubGroupId sub_group, TensorView gradients, StreamView stream);
  /// Does the same, and returns the sub-group to be updated from them until end_early().
  LoadedSubGroup begin_early(SubGroupId sub_group, TensorView gradients, StreamView stream);
  void end_early(SubGroupId sub_group);
  /// The squares of all gradients that came, once the last micro step is done.
  [[nodiscard]] const ExactSum& squares() const { return squares_; }
  /// Makes early updates count.
  void accept();

 private:
  struct SubGroupRecords {
    StateRecord layout;
    int record = 0;      ///< that holds the states
    int new_record = 0;  ///< that an early update writes; another one if the update can be revoked
    bool early = false;  ///< updated early and not yet accepted
    [[nodiscard]] bool revocable() const { return new_record != record; }
  };
  [[nodiscard]] static int record_of(SegmentId segment) { return to_int(segment); }
  [[nodiscard]] offload::FileRange whole_shard(SegmentId segment) const;
  [[nodiscard]] HostView shard_view(SegmentId segment, std::span<std::byte> memory) const;
  std::span<std::byte> fetch(SubGroupId sub_group, RecordContents contents, const UseOrder& order);
  LoadedSubGroup view(const SubGroupRecords& records,
                      std::span<std::byte> record,
                      TensorView gradients);

  const FlatLayout& layout_;
  std::optional<offload::RecordSwap> parameters_;  ///< a record per segment
  /// A record per sub-group; if updates can be revoked, then a second one each.
  std::optional<offload::RecordSwap> states_;
  TypedVector<SubGroupId, SubGroupRecords> records_;
  bool read_ahead_;
  std::vector<TensorView> views_;  ///< the states of the sub-group in use
  UseOrder by_number_;
  UseOrder by_arrival_;
  engine::MicroStep micro_step_;
  bool early_ = false;
  ExactSum squares_;
};

}  // namespace dstrain::zero
