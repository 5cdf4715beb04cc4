#include "zero/saved_states.h"

#include "runtime/ops/convert.h"
#include "runtime/ops/copy_finite.h"
#include "runtime/ops/fill_zero.h"
#include "zero/shard_slices.h"

namespace dstrain::zero {
namespace {

/// This rank's part of a sub-group, in the order of saved_states(); empty: zero.
std::vector<TensorView> saved_values(const RankShards& shards,
                                     const Segment& segment,
                                     std::size_t optimizer_states,
                                     const RankShards::SubGroupLease& lease) {
  std::vector<TensorView> values{lease.exact};
  values.insert(values.end(), lease.states.begin(), lease.states.end());
  values.resize(1 + optimizer_states);
  if (lease.parameters.dtype() != DType::f32) values.push_back(lease.parameters);
  for (TensorView& each : values) {
    if (!each.empty()) each = own_shard(segment, shards.rank(), each);
  }
  return values;
}

/// Elements of a state, from `begin` on.
void copy_state(RankShards& shards,
                const TensorView& state,
                std::int64_t begin,
                const engine::SaveTarget& to) {
  if (state.empty()) return ops::fill_zero(to.values, shards.stream_of(Device{}));
  const StreamView stream = shards.stream_of(state.device());
  const TensorView source = state.part(begin, to.values.shape());
  // Frozen parameters are saved in f32 too; an error in them shows in their own dtype.
  if (source.dtype() != to.values.dtype()) return ops::convert(source, to.values, stream);
  ops::copy_finite({.source = source, .target = to.values, .not_finite = to.not_finite}, stream);
}

/// Copies a sub-group. `saved` is in the order of saved_states(); `begun` counts slices so far.
void copy_group(RankShards& shards,
                SubGroupId sub_group,
                std::span<const TensorView> saved,
                std::size_t& begun,
                engine::SaveTargetOf target_of) {
  for (const auto& [slice, before] :
       sub_group_slices(shards.layout(), shards.plan().sub_groups[sub_group], shards.rank())) {
    if (before == 0) ++begun;
    for (std::size_t state = 0; state < saved.size(); ++state) {
      const engine::SaveTarget to = target_of({begun - 1, state, before}, {slice.elements.count()});
      copy_state(shards, saved[state], slice.offset, to);
    }
  }
}

}  // namespace

std::vector<engine::SavedState> saved_states(std::span<const std::string_view> optimizer_states,
                                             DType dtype,
                                             const config::StatePrecision& precision) {
  std::vector<engine::SavedState> saved{{"fp32", DType::f32}};
  for (const std::string_view name : optimizer_states) {
    saved.push_back({std::string(name), precision.optimizer_states});
  }
  if (dtype != DType::f32) saved.push_back({"weights", dtype, true});
  return saved;
}

std::vector<engine::ParameterSlice> saved_slices(const FlatLayout& layout, int rank) {
  std::vector<engine::ParameterSlice> saved;
  for (const SegmentId segment : layout.segments().ids()) {
    for (const ShardSlice& slice : shard_slices(layout, segment, rank)) {
      saved.push_back(
          {layout.parameter(slice.parameter).spec.name, slice.elements.begin, slice.elements.end});
    }
  }
  return saved;
}

void copy_saved(RankShards& shards, std::size_t optimizer_states, engine::SaveTargetOf target_of) {
  const FlatLayout& layout = shards.layout();
  std::size_t begun = 0;  // slices
  for (const SegmentId segment : layout.segments().ids()) {
    const SegmentShare& share = shards.plan().segments[segment];
    RankShards::ParameterLease parameters = shards.lend(segment, LeaseUse::read);
    for (const SubGroupId sub_group : share.sub_groups) {
      RankShards::SubGroupLease lease = shards.lend(sub_group, parameters);
      copy_group(shards, sub_group,
                 saved_values(shards, layout.segment(segment), optimizer_states, lease), begun,
                 target_of);
      shards.synchronize();
      lease.give_back();
    }
    parameters.give_back();
  }
}

}  // namespace dstrain::zero
