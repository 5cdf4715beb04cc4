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

/// What of a rank's shards lies on disks, and comes into buffers of the host for its use: the
/// parameters of a segment in one record, each sub-group's states with their gradients in another.
///
/// Gradients are written as they are summed; a step reads a sub-group with the next one behind it,
/// and writes back the states alone. A sub-group may also be updated as its gradients come: then
/// the new states wait for accept() (EarlyUpdate::revocable: in a second record, beside the old
/// ones), or for a step that updates the old ones again. All must outlive it. Parameters are
/// thread-safe as RecordSwap is; the rest is for one thread at a time.
class DiskShards {
 public:
  struct Folders {
    const SwapFolder* parameters = nullptr;  ///< null: none lie on a disk
    const SwapFolder* optimizer = nullptr;
  };
  DiskShards(const FlatLayout& layout,
             const ShardPlan& plan,
             const Offload& offload,
             Folders folders,
             StreamView stream);
  /// In files, by category.
  static CategoryBytes file_bytes(const FlatLayout& layout,
                                  const ShardPlan& plan,
                                  const Offload& offload);
  /// Of the host.
  static Bytes buffer_bytes(const FlatLayout& layout,
                            const ShardPlan& plan,
                            const Offload& offload);

  /// Begins to read a segment's parameters, when a buffer is to spare.
  void expect_parameters(SegmentId segment);
  /// The buffer that they are being read into: wait_for_parameters() before use.
  [[nodiscard]] HostView take_parameters(SegmentId segment);
  void wait_for_parameters(SegmentId segment) { parameters_->wait(record_of(segment)); }
  /// A buffer for new values.
  [[nodiscard]] HostView replace_parameters(SegmentId segment);
  /// After either. What has changed is written.
  void release_parameters(SegmentId segment, bool changed);

  /// A sub-group in memory.
  struct LoadedSubGroup {
    std::span<const TensorView> states;
    TensorView gradients;  ///< of an update; empty where they have no place beside the states
  };
  /// Until release(), which writes the states unless they were read only. Each sub-group is
  /// replaced before any other use.
  LoadedSubGroup acquire(SubGroupId sub_group, LeaseUse use);
  void release(SubGroupId sub_group, LeaseUse use);

  /// What comes from now on belongs to this micro step. `early`: in the last one, sub-groups are
  /// updated as their gradients come.
  void begin(engine::MicroStep micro_step, bool early);
  [[nodiscard]] bool updates_early() const { return early_ && micro_step_.last(); }
  /// Adds a sub-group's gradients, summed over the ranks, to what the micro steps before have put
  /// there. `stream` is inline: the values may change once this returns. Throws Error{io}.
  void add(SubGroupId sub_group, TensorView gradients, StreamView stream);
  /// The same, and gives the sub-group to be updated from them until end_early().
  LoadedSubGroup begin_early(SubGroupId sub_group, TensorView gradients, StreamView stream);
  void end_early(SubGroupId sub_group);
  /// Of the gradients of all that came, once the last micro step is done.
  [[nodiscard]] const ExactSum& squares() const { return squares_; }
  /// What was updated early counts.
  void accept();

 private:
  struct SubGroupRecords {
    StateRecord layout;
    int record = 0;      ///< that holds it
    int new_record = 0;  ///< that an early update writes: another one, if that can be revoked
    bool early = false;  ///< was updated so, and not accepted
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
  std::optional<offload::RecordSwap> states_;      ///< per sub-group, then the second ones
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
