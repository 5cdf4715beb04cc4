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

std::vector<MemoryTier> parameter_tiers(const FlatLayout& layout, const Offload& offload) {
  std::int64_t stays = offload.parameters == MemoryTier::nvme ? offload.parameters_in_host : 0;
  std::vector<MemoryTier> tiers;
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

std::vector<MemoryTier> optimizer_tiers(const FlatLayout& layout, const Offload& offload) {
  std::int64_t stays = 0;
  for (const Segment& segment : layout.segments()) {
    if (segment.trainable) stays += segment.shard_numel;
  }
  stays -= static_cast<std::int64_t>(static_cast<double>(stays) * offload.optimizer_ratio);
  std::vector<MemoryTier> tiers = parameter_tiers(layout, offload);
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const Segment& segment = layout.segments()[i];
    const bool fits = segment.shard_numel <= stays;
    if (!segment.trainable) {
      // Where the parameters are worked with.
      if (tiers[i] == MemoryTier::nvme) tiers[i] = offload.staging;
    } else {
      if (fits) stays -= segment.shard_numel;
      tiers[i] = fits ? MemoryTier::device : offload.optimizer;
    }
  }
  return tiers;
}

bool ShardPlan::parameters_in(MemoryTier tier) const {
  return std::ranges::any_of(
      segments, [tier](const SegmentShare& share) { return share.parameters == tier; });
}

bool ShardPlan::states_in(MemoryTier tier) const {
  return std::ranges::any_of(groups, [tier](const SubGroup& group) { return group.tier == tier; });
}

ShardPlan::ShardPlan(const FlatLayout& layout, const Options& options)
    : precision(options.precision) {
  const StagePolicy policy = stage_policy(options.stage);
  const Offload& offload = options.offload;
  const std::vector<MemoryTier> parameters = parameter_tiers(layout, offload);
  const std::vector<MemoryTier> optimizer = optimizer_tiers(layout, offload);
  for (std::size_t index = 0; index < layout.segments().size(); ++index) {
    const Segment& segment = layout.segments()[index];
    const bool sharded = policy.shard_parameters && !segment.persistent;
    SegmentShare share{.parameters = parameters[index],
                       .parameter_numel = sharded ? segment.shard_numel : segment.numel,
                       .optimizer = optimizer[index],
                       .first_group = static_cast<int>(groups.size())};
    share.whole = !sharded || (layout.world() == 1 && offload.parameters == MemoryTier::device);
    const bool has_shard = on_host(share.optimizer) ||
                           (policy.shard_gradients && share.optimizer == MemoryTier::device);
    if (options.trains) {
      SubGroup group{.segment = static_cast<int>(index), .tier = share.optimizer};
      if (segment.trainable) {
        share.gradient_numel = has_shard ? segment.shard_numel : 0;
        group.master =
            segment.dtype != options.precision.masters || !same_place(group.tier, share.parameters);
        group.states = options.optimizer_states;
        group.precision = options.precision;
        // What is rounded needs a place to be read from.
        const bool keeps = offload.keeps_gradients || options.precision.gradients != DType::f32;
        group.gradients = group.tier == MemoryTier::nvme && keeps;
      }
      add_groups(group, policy.shard_optimizer ? segment.shard_numel : segment.numel, offload);
    }
    share.end_group = static_cast<int>(groups.size());
    segments.push_back(share);
  }
}

/// Cuts `numel` elements into groups like `group`.
void ShardPlan::add_groups(SubGroup group, std::int64_t numel, const Offload& offload) {
  const std::int64_t most = group.tier == MemoryTier::device ? numel : offload.sub_group_numel;
  for (; group.offset < numel; group.offset += group.numel) {
    group.numel = std::min(most, numel - group.offset);
    groups.push_back(group);
  }
}

}  // namespace dstrain::zero
