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

/// The fixed places where stage 3 makes sharded segments whole. Units run one after another, so
/// the segments that one unit alone uses share one buffer for each parameter group, or take two in
/// turns when the next unit is gathered while one computes; so do tiles, in buffers of their own,
/// while the rest of their unit is in use; a shared segment has a buffer of its own. A buffer keeps
/// its tenant until another moves in, so that a unit whose backward follows its forward is gathered
/// once.
class GatherBuffers {
 public:
  GatherBuffers(const FlatLayout& layout,
                const Overlap& overlap,
                Communication communication,
                MemoryResource& memory,
                StreamView stream);

  /// Bytes that the buffers of `layout` take.
  static Bytes bytes(const FlatLayout& layout, const Overlap& overlap);

  /// The whole segment, whatever the buffer holds now.
  [[nodiscard]] TensorView view(SegmentId segment) const;
  /// Whether the buffer of `segment` holds it, or will when what is on its way has come.
  [[nodiscard]] bool holds(SegmentId segment) const { return buffer_of(segment).held == segment; }
  /// Begins to make `segment` whole from every rank's `shard`, unless its buffer holds it.
  void gather(SegmentId segment, TensorView shard, StreamView stream);
  /// Who waits for `segment` waits for this later point than that of its gather.
  void set_filled(SegmentId segment, Communication::Point point) {
    buffer_of(segment).filled = std::move(point);
  }
  /// Waits until `segment` is there.
  void wait(SegmentId segment, StreamView stream);
  /// The segment in its buffer is of no use any more.
  void drop(SegmentId segment);

  /// Elements of all buffers' tenants, once `segment` were among them.
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
