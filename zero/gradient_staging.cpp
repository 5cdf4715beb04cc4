#include "zero/gradient_staging.h"

#include "runtime/ops/add.h"
#include "runtime/ops/convert.h"
#include "zero/gradient_reducer.h"

namespace dstrain::zero {

Bytes GradientStaging::bytes(const FlatLayout& layout) {
  return (largest_own_numel(layout, false) + largest_own_numel(layout, true) +
          shared_numel(layout)) *
         size_of(DType::f32);
}

GradientStaging::GradientStaging(const FlatLayout& layout,
                                 MemoryResource& memory,
                                 StreamView stream)
    : layout_(layout), memory_(bytes(layout), memory, stream), segments_(layout.segments().size()) {
  Bytes next = 0;
  const auto cut = [&](std::int64_t numel) {
    const TensorView values = memory_.block().cut(next, DType::f32, {numel});
    next += values.bytes();
    return values;
  };
  units_ = cut(largest_own_numel(layout, false));
  tiles_ = cut(largest_own_numel(layout, true));
  for (const SegmentId id : segments_.ids()) {
    const Segment& segment = layout.segment(id);
    if (segment.trainable && segment.shared) segments_[id] = cut(segment.numel);
  }
}

void GradientStaging::place(model::PartId part, StreamView stream) {
  const TensorView& memory = layout_.is_tile(part) ? tiles_ : units_;
  std::int64_t next = 0;
  for (const SegmentId id : layout_.part_segments(part)) {
    const Segment& segment = layout_.segment(id);
    if (!segment.trainable) continue;
    TensorView& values = segments_[id];
    if (!segment.shared) {
      values = memory.part(next, {segment.numel});
      next += segment.numel;
    }
    zero_padding(layout_, segment, values, stream);
  }
}

void GradientStaging::keep(SegmentId segment,
                           const TensorView& kept,
                           bool first,
                           StreamView stream) const {
  const TensorView& values = segments_[segment];
  first ? ops::convert(values, kept, stream) : ops::add(values, kept, stream);
}

}  // namespace dstrain::zero
