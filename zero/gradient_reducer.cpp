#include "zero/gradient_reducer.h"

#include <algorithm>

#include "runtime/ops/fill_zero.h"

namespace dstrain::zero {

PendingUses::PendingUses(const FlatLayout& layout)
    : layout_(layout), users_(layout.segments().size(), 0) {
  for (const model::PartId part : layout.parts()) {
    for (const SegmentId segment : layout.part_segments(part)) {
      if (layout.segment(segment).trainable) ++users_[segment];
    }
  }
  pending_ = users_;
}

std::span<const SegmentId> PendingUses::complete(model::PartId part) {
  completed_.clear();
  for (const SegmentId segment : layout_.part_segments(part)) {
    if (!layout_.segment(segment).trainable) continue;
    if (--pending_[segment] == 0) completed_.push_back(segment);
  }
  return completed_;
}

std::span<const model::GradientTarget> GradientTargets::of(
    model::PartId part, const TypedVector<SegmentId, TensorView>& segments) {
  std::vector<model::GradientTarget>& targets = layout_.is_tile(part) ? tile_ : unit_;
  targets.clear();
  for (const ParameterId parameter : layout_.part_parameters(part)) {
    if (parameter == FlatLayout::in_tiles || !layout_.trains(parameter)) {
      targets.emplace_back();
      continue;
    }
    const Placement& placement = layout_.parameter(parameter);
    const TensorView& segment = segments[placement.segment];
    targets.push_back({segment.part(placement.offset, placement.shape), written_[parameter]});
    written_[parameter] = true;
  }
  return targets;
}

std::int64_t own_numel(const FlatLayout& layout, model::PartId part) {
  std::int64_t numel = 0;
  for (const SegmentId id : layout.part_segments(part)) {
    const Segment& segment = layout.segment(id);
    if (segment.trainable && !segment.shared) numel += segment.numel;
  }
  return numel;
}

std::int64_t largest_own_numel(const FlatLayout& layout, bool tiles) {
  std::int64_t largest = 0;
  for (const model::PartId part : layout.parts()) {
    if (layout.is_tile(part) == tiles) largest = std::max(largest, own_numel(layout, part));
  }
  return largest;
}

std::int64_t shared_numel(const FlatLayout& layout) {
  std::int64_t numel = 0;
  for (const Segment& segment : layout.segments()) {
    if (segment.trainable && segment.shared) numel += segment.numel;
  }
  return numel;
}

void zero_padding(const FlatLayout& layout,
                  const Segment& segment,
                  TensorView values,
                  StreamView stream) {
  std::int64_t used = 0;
  const auto zero_until = [&](std::int64_t end) {
    if (end > used) ops::fill_zero(values.part(used, {end - used}), stream);
  };
  for (const ParameterId parameter : segment.parameters) {
    const Placement& placement = layout.parameter(parameter);
    zero_until(placement.offset);
    used = placement.offset + placement.shape.numel();
  }
  zero_until(segment.numel);
}

}  // namespace dstrain::zero
