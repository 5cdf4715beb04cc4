#include "zero/gradient_reducer.h"

#include <algorithm>

#include "runtime/ops/chunks.h"

namespace dstrain::zero {

PendingUses::PendingUses(const FlatLayout& layout)
    : layout_(layout), users_(layout.segments().size(), 0) {
  for (int unit = 0; unit < layout.units(); ++unit) {
    for (const int segment : layout.unit_segments(unit)) {
      ++users_[static_cast<std::size_t>(segment)];
    }
  }
  pending_ = users_;
}

std::span<const int> PendingUses::complete(int unit) {
  completed_.clear();
  for (const int segment : layout_.unit_segments(unit)) {
    if (--pending_[static_cast<std::size_t>(segment)] == 0) completed_.push_back(segment);
  }
  return completed_;
}

void fill_targets(const FlatLayout& layout,
                  int unit,
                  std::span<const std::span<float>> segments,
                  std::vector<bool>& written,
                  std::vector<model::GradientTarget>& targets) {
  targets.clear();
  for (const int parameter : layout.unit_parameters(unit)) {
    const Placement& place = layout.parameter(parameter);
    const std::span<float> segment = segments[static_cast<std::size_t>(place.segment)];
    const auto index = static_cast<std::size_t>(parameter);
    targets.push_back({{segment.subspan(static_cast<std::size_t>(place.offset)), place.spec.shape},
                       written[index]});
    written[index] = true;
  }
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
    used = place.offset + place.spec.shape.numel();
  }
  zero_until(segment.numel);
}

}  // namespace dstrain::zero
