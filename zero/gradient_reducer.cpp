#include "zero/gradient_reducer.h"

#include <algorithm>

#include "runtime/base/parallel_for.h"

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

namespace {

constexpr std::int64_t chunk = 1 << 16;

template <class Body>
void for_chunks(std::span<float> target, std::span<const float> values, const Body& body) {
  const auto numel = static_cast<std::int64_t>(target.size());
  parallel_for((numel + chunk - 1) / chunk, [&](std::int64_t i) {
    body(target.data() + i * chunk, values.data() + i * chunk, std::min(chunk, numel - i * chunk));
  });
}

}  // namespace

void copy_to(std::span<float> target, std::span<const float> values) {
  for_chunks(target, values, [](float* to, const float* from, std::int64_t count) {
    std::copy_n(from, count, to);
  });
}

void add_to(std::span<float> sum, std::span<const float> values) {
  for_chunks(sum, values, [](float* to, const float* from, std::int64_t count) {
    for (std::int64_t k = 0; k < count; ++k) to[k] += from[k];
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
