#pragma once
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/communication.h"
#include "zero/flat_layout.h"
#include "zero/overlap.h"

namespace dstrain::zero {

/// The fixed buffers in which stage 3 makes sharded segments whole. Units run one after another, so
/// the segments that only one unit uses share one buffer per parameter group. They alternate
/// between two if the next unit is gathered while one computes. Tiles have buffers of their own,
/// because the rest of their unit is in use meanwhile; a shared segment has its own buffer. A
/// buffer keeps its segment until another is gathered into it, so a unit whose backward follows its
/// forward is gathered once.
class GatherBuffers {
 public:
  GatherBuffers(const FlatLayout& layout,
                const Overlap& overlap,
                Communication communication,
                MemoryResource& memory,
                StreamView stream);

  /// Bytes that the buffers of `layout` take.
  static Bytes bytes(const FlatLayout& layout, const Overlap& overlap);

  /// The memory of the whole segment, even if the buffer holds another one now.
  [[nodiscard]] TensorView view(SegmentId segment) const;
  /// Whether the buffer of `segment` holds it, or will once the gather under way is done.
  [[nodiscard]] bool holds(SegmentId segment) const { return buffer_of(segment).held == segment; }
  /// Begins to make `segment` whole from every rank's `shard`, unless its buffer holds it.
  void gather(SegmentId segment, TensorView shard, StreamView stream);
  /// Makes wait() for `segment` wait for `point`, which is later than its gather.
  void set_filled(SegmentId segment, Communication::Point point) {
    buffer_of(segment).filled = std::move(point);
  }
  /// Waits until `segment` is there.
  void wait(SegmentId segment, StreamView stream);
  /// Marks the segment in its buffer as stale.
  void drop(SegmentId segment);

  /// Elements of all gathered segments if `segment` were one of them.
  [[nodiscard]] std::int64_t live_numel_with(SegmentId segment) const;
  /// Whether `segment` would take the buffer of one of `others`.
  [[nodiscard]] bool displaces_any(SegmentId segment, std::span<const SegmentId> others) const;

 private:
  struct GatherBuffer {
    std::int64_t offset = 0;  ///< elements from the start of the memory
    std::optional<SegmentId> held{};
    Communication::Point filled{};
  };
  [[nodiscard]] const GatherBuffer& buffer_of(SegmentId segment) const;
  [[nodiscard]] GatherBuffer& buffer_of(SegmentId segment);

  const FlatLayout& layout_;
  Communication communication_;
  std::vector<GatherBuffer> buffers_;
  /// Index into buffers_; none: the segment is never gathered.
  TypedVector<SegmentId, std::optional<std::size_t>> buffer_index_;
  Buffer memory_;
};

}  // namespace dstrain::zero
