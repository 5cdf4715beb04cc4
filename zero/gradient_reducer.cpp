#include "zero/gradient_reducer.h"

#include <algorithm>

#include "runtime/ops/fill_zero.h"

namespace dstrain::zero {

PendingUses::PendingUses(const FlatLayout& layout)
    : layout_(layout), users_(layout.segments().size(), 0) {
  for (int part = 0; part < layout.parts(); ++part) {
    for (const int segment : layout.part_segments(part)) {
      if (layout.segment(segment).trainable) ++users_[static_cast<std::size_t>(segment)];
    }
  }
  pending_ = users_;
}

std::span<const int> PendingUses::complete(int part) {
  completed_.clear();
  for (const int segment : layout_.part_segments(part)) {
    if (!layout_.segment(segment).trainable) continue;
    if (--pending_[static_cast<std::size_t>(segment)] == 0) completed_.push_back(segment);
  }
  return completed_;
}

std::span<const model::GradientTarget> GradientTargets::of(int part,
                                                           std::span<const TensorView> segments) {
  std::vector<model::GradientTarget>& targets = layout_.is_tile(part) ? tile_ : unit_;
  targets.clear();
  for (const int parameter : layout_.part_parameters(part)) {
    if (parameter == FlatLayout::in_tiles || !layout_.trains(parameter)) {
      targets.emplace_back();
      continue;
    }
    const Placement& place = layout_.parameter(parameter);
    const TensorView segment = segments[static_cast<std::size_t>(place.segment)];
    const auto index = static_cast<std::size_t>(parameter);
    targets.push_back({segment.part(place.offset, place.shape), written_[index]});
    written_[index] = true;
  }
  return targets;
}

std::int64_t own_numel(const FlatLayout& layout, int part) {
  std::int64_t numel = 0;
  for (const int index : layout.part_segments(part)) {
    const Segment& segment = layout.segment(index);
    if (segment.trainable && !segment.shared) numel += segment.numel;
  }
  return numel;
}

std::int64_t largest_own_numel(const FlatLayout& layout, bool tiles) {
  std::int64_t largest = 0;
  for (int part = 0; part < layout.parts(); ++part) {
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
  for (const int parameter : segment.parameters) {
    const Placement& place = layout.parameter(parameter);
    zero_until(place.offset);
    used = place.offset + place.shape.numel();
  }
  zero_until(segment.numel);
}

}  // namespace dstrain::zero
