#pragma once
#include <span>
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/flat_layout.h"

namespace dstrain::zero {

/// Where the backward of a micro step writes gradients that are kept in 16 bits: in f32, so that
/// what several units add to a shared segment is rounded once. The segments of a unit and those of
/// a tile have places that they take in turns, shared ones places of their own.
class GradientStaging {
 public:
  GradientStaging(const FlatLayout& layout, MemoryResource& memory, StreamView stream);
  static Bytes bytes(const FlatLayout& layout);

  /// The backward of `part` begins: its segments have places, with zeros where no parameter is.
  void place(model::PartId part, StreamView stream);
  /// Per segment, while it is written.
  [[nodiscard]] const TypedVector<SegmentId, TensorView>& segments() const { return segments_; }
  /// A segment is complete: becomes `kept`, or is added to it.
  void keep(SegmentId segment, const TensorView& kept, bool first, StreamView stream) const;

 private:
  const FlatLayout& layout_;
  Buffer memory_;
  TensorView units_;
  TensorView tiles_;
  TypedVector<SegmentId, TensorView> segments_;
};

}  // namespace dstrain::zero
