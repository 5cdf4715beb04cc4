#pragma once
#include <memory>
#include <span>
#include <vector>

#include "zero/communication.h"
#include "zero/gather_buffers.h"
#include "zero/overlap.h"
#include "zero/part_schedule.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Makes the parameters of parts whole for units. Some segments are kept whole; the others are
/// gathered from the shards of all ranks, ahead of their use if Overlap allows it. All references
/// must outlive it.
class ParameterGathers {
 public:
  /// `buffers`: of the device, for gathered segments.
  ParameterGathers(RankShards& shards,
                   const Overlap& overlap,
                   Communication communication,
                   MemoryResource& buffers,
                   StreamView stream);
  /// Bytes on the device.
  static Bytes buffer_bytes(const FlatLayout& layout,
                            const ShardPlan& plan,
                            const Overlap& overlap);

  void expect(std::span<const model::PartId> parts, std::int64_t rounds) {
    schedule_.expect(parts, rounds);
  }
  /// Returns the whole parameters of a part. Gathers the segments that are missing, and begins to
  /// gather those of the next part.
  std::span<const TensorView> acquire(model::PartId part, StreamView stream);
  void release(model::PartId part);
  /// Call after this rank's shard of a segment was loaded: gathers segments that are kept whole.
  void loaded(SegmentId segment, StreamView stream);
  /// Call after this rank updated its elements of a segment: begins to renew every copy on this
  /// rank.
  void publish(SegmentId segment, StreamView stream);

 private:
  [[nodiscard]] bool whole(SegmentId segment) const {
    return shards_.plan().segments[segment].whole;
  }
  [[nodiscard]] bool on_disk(SegmentId segment) const {
    return shards_.plan().segments[segment].parameters == MemoryTier::nvme;
  }
  void gather(SegmentId segment, StreamView stream);
  void gather_whole(SegmentId segment, StreamView stream);
  void prefetch(StreamView stream);
  void read_ahead();
  [[nodiscard]] bool reused_soon(SegmentId segment) const;
  void view_parts();

  const FlatLayout& layout_;
  RankShards& shards_;
  Overlap overlap_;
  Communication communication_;
  PartSchedule schedule_;
  std::unique_ptr<GatherBuffers> gathered_buffers_;  ///< null when nothing is gathered
  TypedVector<model::PartId, std::vector<TensorView>> views_;
  TypedVector<model::PartId, std::vector<SegmentId>> gathered_;  ///< all but whole segments
  std::vector<SegmentId> in_use_;  ///< of these, by parts that are acquired
};

}  // namespace dstrain::zero
