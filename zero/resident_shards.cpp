#include "zero/resident_shards.h"

namespace dstrain::zero {
namespace {

using Place = ResidentShards::Place;

bool lies_in(MemoryTier tier, Place place) {
  return place == Place::host ? on_host(tier) : tier == MemoryTier::device;
}

template <class InPlace>
CategoryBytes bytes_where(const FlatLayout& layout, const ShardPlan& plan, InPlace in_place) {
  CategoryBytes bytes{};
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    const SegmentShare& share = plan.segments[i];
    if (in_place(share.parameters)) {
      of(bytes, MemoryCategory::parameters) +=
          share.parameter_numel * size_of(layout.segments()[i].dtype);
    }
    if (in_place(share.optimizer)) {
      of(bytes, MemoryCategory::gradients) +=
          share.gradient_numel * size_of(plan.precision.gradients);
    }
  }
  for (const SubGroup& group : plan.groups) {
    if (!in_place(group.tier)) continue;
    of(bytes, MemoryCategory::optimizer) += group.numel * group.state_bytes();
  }
  return bytes;
}

Bytes bytes_of(const FlatLayout& layout,
               const ShardPlan& plan,
               Place place,
               MemoryCategory category) {
  return of(bytes_where(layout, plan, [place](MemoryTier tier) { return lies_in(tier, place); }),
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

ResidentShards::ResidentShards(
    const FlatLayout& layout, const ShardPlan& plan, Place place, Memory memory, StreamView stream)
    : parameters_(
          bytes_of(layout, plan, place, MemoryCategory::parameters), memory.parameters, stream),
      gradients_(
          bytes_of(layout, plan, place, MemoryCategory::gradients), memory.gradients, stream),
      state_memory_(
          bytes_of(layout, plan, place, MemoryCategory::optimizer), memory.optimizer, stream) {
  for (std::size_t i = 0; i < plan.segments.size(); ++i) {
    const SegmentShare& share = plan.segments[i];
    parameters_.add(layout.segments()[i].dtype,
                    lies_in(share.parameters, place) ? share.parameter_numel : 0);
    gradients_.add(plan.precision.gradients,
                   lies_in(share.optimizer, place) ? share.gradient_numel : 0);
  }
  for (const SubGroup& group : plan.groups) {
    std::vector<TensorView>& states = states_.emplace_back();
    if (!lies_in(group.tier, place)) continue;
    states = group.cut_states(state_memory_.cut(DType::u8, group.numel * group.state_bytes()));
  }
}

}  // namespace dstrain::zero
