#pragma once
#include <cstdint>
#include <vector>

#include "runtime/config/state_precision.h"
#include "zero/flat_layout.h"
#include "zero/offload.h"

namespace dstrain::zero {

/// Index into ShardPlan::sub_groups.
enum class SubGroupId : int {};

/// What a rank keeps of a segment; of one that is frozen the parameters alone.
struct SegmentShare {
  MemoryTier parameters = MemoryTier::device;  ///< where its parameters lie
  std::int64_t parameter_numel = 0;            ///< the whole segment's, or its shard's
  bool whole = false;  ///< all of it is on the device of each rank; nothing is gathered
  MemoryTier optimizer = MemoryTier::device;  ///< where its summed gradients and states lie
  std::int64_t gradient_numel = 0;  ///< of a shard of summed gradients; 0: they are elsewhere
  IdRange<SubGroupId> sub_groups{};
};

/// What a rank updates in one call: a part of what it updates of a segment. What is frozen is cut
/// likewise, to be loaded and saved.
struct SubGroup {
  SegmentId segment{};
  std::int64_t offset = 0;  ///< first element within what the rank updates of the segment
  std::int64_t numel = 0;
  std::int64_t states = 0;  ///< of the optimizer; 0: it is frozen, and nothing updates it
  bool master = false;      ///< the parameters that units see are copies of what is updated
  config::StatePrecision precision{};    ///< of states, master and gradients
  MemoryTier tier = MemoryTier::device;  ///< where the states lie
  bool gradients = false;                ///< a place for the summed gradients is beside the states

  /// Of the optimizer's states and the master, per element.
  [[nodiscard]] Bytes state_bytes() const {
    return states * size_of(precision.optimizer_states) + (master ? size_of(precision.masters) : 0);
  }
  /// Cuts `memory` into these.
  [[nodiscard]] std::vector<TensorView> cut_states(const TensorView& memory) const;
};

/// What a rank keeps of parameters, gradients and optimizer states, and in which tier: what is
/// allocated, and what the memory plan counts. A master is kept of what units see in another dtype,
/// or somewhere else than where it is updated. Segments that are updated by the host are cut into
/// sub-groups of Offload::sub_group_numel elements at most.
class ShardPlan {
 public:
  struct Options {
    int stage = 0;
    std::int64_t optimizer_states = 2;  ///< of training
    config::StatePrecision precision{};
    bool trains = true;  ///< false: parameters are only served
    Offload offload{};
  };
  ShardPlan(const FlatLayout& layout, const Options& options);

  /// Whether a segment's parameters, or a sub-group's states, lie in `tier`.
  [[nodiscard]] bool parameters_in(MemoryTier tier) const;
  [[nodiscard]] bool states_in(MemoryTier tier) const;

  TypedVector<SegmentId, SegmentShare> segments;
  TypedVector<SubGroupId, SubGroup> sub_groups;  ///< in the order of their segments
  config::StatePrecision precision;

 private:
  void add_sub_groups(SubGroup sub_group, std::int64_t numel, const Offload& offload);
};

/// Per segment: where a rank's part of its parameters lies.
TypedVector<SegmentId, MemoryTier> parameter_tiers(const FlatLayout& layout,
                                                   const Offload& offload);
/// Per segment: where its summed gradients and optimizer states lie; where a frozen one is worked
/// with.
TypedVector<SegmentId, MemoryTier> optimizer_tiers(const FlatLayout& layout,
                                                   const Offload& offload);

}  // namespace dstrain::zero
