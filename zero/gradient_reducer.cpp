#include "zero/gradient_reducer.h"

#include <algorithm>

#include "runtime/ops/chunks.h"

namespace dstrain::zero {

PendingUses::PendingUses(const FlatLayout& layout)
    : layout_(layout), users_(layout.segments().size(), 0) {
  for (int part = 0; part < layout.parts(); ++part) {
    for (const int segment : layout.part_segments(part)) {
      ++users_[static_cast<std::size_t>(segment)];
    }
  }
  pending_ = users_;
}

std::span<const int> PendingUses::complete(int part) {
  completed_.clear();
  for (const int segment : layout_.part_segments(part)) {
    if (--pending_[static_cast<std::size_t>(segment)] == 0) completed_.push_back(segment);
  }
  return completed_;
}

std::span<const model::GradientTarget> GradientTargets::of(
    int part, std::span<const std::span<float>> segments) {
  std::vector<model::GradientTarget>& targets = layout_.is_tile(part) ? tile_ : unit_;
  targets.clear();
  for (const int parameter : layout_.part_parameters(part)) {
    if (parameter == FlatLayout::in_tiles) {
      targets.emplace_back();
      continue;
    }
    const Placement& place = layout_.parameter(parameter);
    const std::span<float> segment = segments[static_cast<std::size_t>(place.segment)];
    const auto index = static_cast<std::size_t>(parameter);
    targets.push_back(
        {{segment.subspan(static_cast<std::size_t>(place.offset)), place.shape}, written_[index]});
    written_[index] = true;
  }
  return targets;
}

void copy_to(std::span<float> target, std::span<const float> values) {
  ops::for_chunks(std::ssize(target), ops::elementwise_chunk,
                  [to = target.data(), from = values.data()](std::int64_t begin, std::int64_t end) {
                    std::copy(from + begin, from + end, to + begin);
                  });
}

void add_to(std::span<float> sum, std::span<const float> values) {
  ops::for_chunks(std::ssize(sum), ops::elementwise_chunk,
                  [to = sum.data(), from = values.data()](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
                  });
}

void zero_padding(const FlatLayout& layout, const Segment& segment, std::span<float> values) {
  std::int64_t used = 0;
  const auto zero_until = [&](std::int64_t end) {
    std::fill(values.begin() + used, values.begin() + end, 0.0F);
  };
  for (const int parameter : segment.parameters) {
    const Placement& place = layout.parameter(parameter);
    zero_until(place.offset);
    used = place.offset + place.shape.numel();
  }
  zero_until(segment.numel);
}

}  // namespace dstrain::zero
