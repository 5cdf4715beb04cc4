#pragma once
#include <cstdint>
#include <vector>

#include "runtime/config/state_precision.h"
#include "zero/flat_layout.h"
#include "zero/offload.h"

namespace dstrain::zero {

/// Index into ShardPlan::sub_groups.
enum class SubGroupId : int {};

/// What a rank keeps of a segment: of a frozen one, only the parameters.
struct SegmentShare {
  MemoryTier parameters = MemoryTier::device;  ///< tier of its parameters
  std::int64_t parameter_numel = 0;            ///< the whole segment's, or its shard's
  bool whole = false;  ///< every rank has all of it on its device; it is never gathered
  MemoryTier optimizer = MemoryTier::device;  ///< tier of its summed gradients and states
  std::int64_t gradient_numel = 0;  ///< of a shard of summed gradients; 0: none is kept here
  IdRange<SubGroupId> sub_groups{};
};

/// Elements that a rank updates in one call: a slice of those that it updates of a segment. Frozen
/// segments are cut in the same way, for loading and saving.
struct SubGroup {
  SegmentId segment{};
  std::int64_t offset = 0;  ///< of the first element, in the rank's share of the segment
  std::int64_t numel = 0;
  std::int64_t states = 0;  ///< of the optimizer; 0: it is frozen
  bool master = false;      ///< the optimizer updates a master of the parameters that units see
  config::StatePrecision precision{};    ///< of states, master and gradients
  MemoryTier tier = MemoryTier::device;  ///< of the states
  bool gradients = false;                ///< the summed gradients are kept beside the states

  /// Bytes of the optimizer's states and the master, per element.
  [[nodiscard]] Bytes state_bytes() const {
    return states * size_of(precision.optimizer_states) + (master ? size_of(precision.masters) : 0);
  }
  /// Cuts `memory` into the states and the master.
  [[nodiscard]] std::vector<TensorView> cut_states(const TensorView& memory) const;
};

/// What a rank keeps of parameters, gradients and optimizer states, and in which tiers. Both the
/// allocations and the memory plan follow it. A master is kept if units see another dtype, or if
/// the parameters are updated in another memory than they are kept. Segments that the host updates
/// are cut into sub-groups of at most Offload::sub_group_numel elements.
class ShardPlan {
 public:
  struct Options {
    int stage = 0;
    std::int64_t optimizer_states = 2;  ///< that the optimizer keeps
    config::StatePrecision precision{};
    bool trains = true;  ///< false: parameters are only served
    Offload offload{};
  };
  ShardPlan(const FlatLayout& layout, const Options& options);

  /// Whether the parameters of a segment, or the states of a sub-group, are in `tier`.
  [[nodiscard]] bool parameters_in(MemoryTier tier) const;
  [[nodiscard]] bool states_in(MemoryTier tier) const;

  TypedVector<SegmentId, SegmentShare> segments;
  TypedVector<SubGroupId, SubGroup> sub_groups;  ///< in the order of their segments
  config::StatePrecision precision;

 private:
  void add_sub_groups(SubGroup sub_group, std::int64_t numel, const Offload& offload);
};

/// Per segment: the tier of a rank's parameters.
TypedVector<SegmentId, MemoryTier> parameter_tiers(const FlatLayout& layout,
                                                   const Offload& offload);
/// Per segment: the tier of its summed gradients and optimizer states, or that in which a frozen
/// one is used.
TypedVector<SegmentId, MemoryTier> optimizer_tiers(const FlatLayout& layout,
                                                   const Offload& offload);

}  // namespace dstrain::zero
