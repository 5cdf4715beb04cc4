#pragma once
#include <span>
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/flat_layout.h"

namespace dstrain::zero {

/// The f32 memory into which the backward of a micro step writes gradients that are kept in 16
/// bits, so that gradients that several units add to a shared segment are rounded once. The
/// segments of all units use one region in turns, and those of all tiles another; shared segments
/// have regions of their own.
class GradientStaging {
 public:
  GradientStaging(const FlatLayout& layout, MemoryResource& memory, StreamView stream);
  static Bytes bytes(const FlatLayout& layout);

  /// Prepares the backward of `part`: its segments get memory, with zeros in the padding.
  void place(model::PartId part, StreamView stream);
  /// The gradients of each segment while they are being written.
  [[nodiscard]] const TypedVector<SegmentId, TensorView>& segments() const { return segments_; }
  /// Rounds the gradients of a complete segment into `kept`: overwrites it if `first`, else adds.
  void keep(SegmentId segment, const TensorView& kept, bool first, StreamView stream) const;

 private:
  const FlatLayout& layout_;
  Buffer memory_;
  TensorView units_;
  TensorView tiles_;
  TypedVector<SegmentId, TensorView> segments_;
};

}  // namespace dstrain::zero
