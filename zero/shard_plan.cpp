#include "zero/shard_plan.h"

#include <algorithm>

#include "zero/stage_policy.h"

namespace dstrain::zero {
namespace {

/// Whether a value of one tier can be updated in place of one of the other.
bool same_place(MemoryTier a, MemoryTier b) {
  return a != MemoryTier::nvme && b != MemoryTier::nvme &&
         (a == MemoryTier::device) == (b == MemoryTier::device);
}

}  // namespace

std::vector<TensorView> SubGroup::cut_states(const TensorView& memory) const {
  std::vector<TensorView> cut;
  Bytes next = 0;
  const auto add = [&](DType dtype) {
    next += cut.emplace_back(memory.cut(next, dtype, {numel})).bytes();
  };
  for (std::int64_t state = 0; state < states; ++state) add(precision.optimizer_states);
  if (master) add(precision.masters);
  return cut;
}

TypedVector<SegmentId, MemoryTier> parameter_tiers(const FlatLayout& layout,
                                                   const Offload& offload) {
  std::int64_t stays = offload.parameters == MemoryTier::nvme ? offload.parameters_in_host : 0;
  TypedVector<SegmentId, MemoryTier> tiers;
  for (const Segment& segment : layout.segments()) {
    const bool fits = segment.shard_numel <= stays;
    if (segment.persistent) {
      tiers.push_back(MemoryTier::device);
    } else {
      if (fits) stays -= segment.shard_numel;
      tiers.push_back(fits ? offload.staging : offload.parameters);
    }
  }
  return tiers;
}

TypedVector<SegmentId, MemoryTier> optimizer_tiers(const FlatLayout& layout,
                                                   const Offload& offload) {
  std::int64_t stays = 0;
  for (const Segment& segment : layout.segments()) {
    if (segment.trainable) stays += segment.shard_numel;
  }
  stays -= static_cast<std::int64_t>(static_cast<double>(stays) * offload.optimizer_ratio);
  TypedVector<SegmentId, MemoryTier> tiers = parameter_tiers(layout, offload);
  for (const SegmentId id : tiers.ids()) {
    const Segment& segment = layout.segment(id);
    const bool fits = segment.shard_numel <= stays;
    if (!segment.trainable) {
      // A frozen segment is used in memory.
      if (tiers[id] == MemoryTier::nvme) tiers[id] = offload.staging;
    } else {
      if (fits) stays -= segment.shard_numel;
      tiers[id] = fits ? MemoryTier::device : offload.optimizer;
    }
  }
  return tiers;
}

bool ShardPlan::parameters_in(MemoryTier tier) const {
  return std::ranges::any_of(
      segments, [tier](const SegmentShare& share) { return share.parameters == tier; });
}

bool ShardPlan::states_in(MemoryTier tier) const {
  return std::ranges::any_of(sub_groups,
                             [tier](const SubGroup& each) { return each.tier == tier; });
}

ShardPlan::ShardPlan(const FlatLayout& layout, const Options& options)
    : precision(options.precision) {
  const StagePolicy policy = stage_policy(options.stage);
  const Offload& offload = options.offload;
  const auto parameters = parameter_tiers(layout, offload);
  const auto optimizer = optimizer_tiers(layout, offload);
  for (const SegmentId id : layout.segments().ids()) {
    const Segment& segment = layout.segment(id);
    const bool sharded = policy.shard_parameters && !segment.persistent;
    SegmentShare share{.parameters = parameters[id],
                       .parameter_numel = sharded ? segment.shard_numel : segment.numel,
                       .optimizer = optimizer[id]};
    share.whole = !sharded || (layout.world() == 1 && offload.parameters == MemoryTier::device);
    const bool has_shard = on_host(share.optimizer) ||
                           (policy.shard_gradients && share.optimizer == MemoryTier::device);
    const SubGroupId first = sub_groups.end_id();
    if (options.trains) {
      SubGroup sub_group{.segment = id, .tier = share.optimizer};
      if (segment.trainable) {
        share.gradient_numel = has_shard ? segment.shard_numel : 0;
        sub_group.master = segment.dtype != options.precision.masters ||
                           !same_place(sub_group.tier, share.parameters);
        sub_group.states = options.optimizer_states;
        sub_group.precision = options.precision;
        // Rounding needs the summed gradients in memory.
        const bool keeps = offload.keeps_gradients || options.precision.gradients != DType::f32;
        sub_group.gradients = sub_group.tier == MemoryTier::nvme && keeps;
      }
      add_sub_groups(sub_group, policy.shard_optimizer ? segment.shard_numel : segment.numel,
                     offload);
    }
    share.sub_groups = {first, sub_groups.end_id()};
    segments.push_back(share);
  }
}

/// Cuts `numel` elements into sub-groups like `sub_group`.
void ShardPlan::add_sub_groups(SubGroup sub_group, std::int64_t numel, const Offload& offload) {
  const std::int64_t most = sub_group.tier == MemoryTier::device ? numel : offload.sub_group_numel;
  for (; sub_group.offset < numel; sub_group.offset += sub_group.numel) {
    sub_group.numel = std::min(most, numel - sub_group.offset);
    sub_groups.push_back(sub_group);
  }
}

}  // namespace dstrain::zero
