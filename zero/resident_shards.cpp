#include "zero/resident_shards.h"

namespace dstrain::zero {
namespace {

using Location = ResidentShards::Location;

bool lies_in(MemoryTier tier, Location location) {
  return location == Location::host ? on_host(tier) : tier == MemoryTier::device;
}

template <class IsHere>
CategoryBytes bytes_where(const FlatLayout& layout, const ShardPlan& plan, IsHere is_here) {
  CategoryBytes bytes{};
  for (const SegmentId id : plan.segments.ids()) {
    const SegmentShare& share = plan.segments[id];
    if (is_here(share.parameters)) {
      of(bytes, MemoryCategory::parameters) +=
          share.parameter_numel * size_of(layout.segment(id).dtype);
    }
    if (is_here(share.optimizer)) {
      of(bytes, MemoryCategory::gradients) +=
          share.gradient_numel * size_of(plan.precision.gradients);
    }
  }
  for (const SubGroup& sub_group : plan.sub_groups) {
    if (!is_here(sub_group.tier)) continue;
    of(bytes, MemoryCategory::optimizer) += sub_group.numel * sub_group.state_bytes();
  }
  return bytes;
}

Bytes bytes_of(const FlatLayout& layout,
               const ShardPlan& plan,
               Location location,
               MemoryCategory category) {
  return of(
      bytes_where(layout, plan, [location](MemoryTier tier) { return lies_in(tier, location); }),
      category);
}

}  // namespace

CategoryBytes ResidentShards::bytes(const FlatLayout& layout,
                                    const ShardPlan& plan,
                                    MemoryTier tier) {
  if (tier == MemoryTier::nvme) return {};
  return bytes_where(layout, plan, [tier](MemoryTier other) { return other == tier; });
}

TensorView ResidentShards::Tensors::cut(DType dtype, std::int64_t numel) {
  if (numel == 0) return {};
  const TensorView view = memory_.block().cut(used_, dtype, {numel});
  used_ += view.bytes();
  return view;
}

ResidentShards::ResidentShards(const FlatLayout& layout,
                               const ShardPlan& plan,
                               Location location,
                               Memory memory,
                               StreamView stream)
    : parameters_(
          bytes_of(layout, plan, location, MemoryCategory::parameters), memory.parameters, stream),
      gradients_(
          bytes_of(layout, plan, location, MemoryCategory::gradients), memory.gradients, stream),
      state_memory_(
          bytes_of(layout, plan, location, MemoryCategory::optimizer), memory.optimizer, stream) {
  for (const SegmentId id : plan.segments.ids()) {
    const SegmentShare& share = plan.segments[id];
    parameters_.add(layout.segment(id).dtype,
                    lies_in(share.parameters, location) ? share.parameter_numel : 0);
    gradients_.add(plan.precision.gradients,
                   lies_in(share.optimizer, location) ? share.gradient_numel : 0);
  }
  for (const SubGroup& sub_group : plan.sub_groups) {
    std::vector<TensorView>& states = states_.emplace_back();
    if (!lies_in(sub_group.tier, location)) continue;
    states = sub_group.cut_states(
        state_memory_.cut(DType::u8, sub_group.numel * sub_group.state_bytes()));
  }
}

}  // namespace dstrain::zero
