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

/// Makes the parameters of parts whole for units: what is kept whole is there, the other segments
/// are gathered from the shards of all ranks, ahead of their use where that is wanted. All
/// references must outlive it.
class ParameterGathers {
 public:
  /// `buffers`: of the device, for gathered segments.
  ParameterGathers(RankShards& shards,
                   const Overlap& overlap,
                   Communication communication,
                   MemoryResource& buffers,
                   StreamView stream);
  /// Of the device.
  static Bytes buffer_bytes(const FlatLayout& layout,
                            const ShardPlan& plan,
                            const Overlap& overlap);

  void expect(std::span<const model::PartId> parts, std::int64_t rounds) {
    schedule_.expect(parts, rounds);
  }
  /// The whole parameters of a part. Gathers the segments that are not here, and begins to gather
  /// those of the next part.
  std::span<const TensorView> acquire(model::PartId part, StreamView stream);
  void release(model::PartId part);
  /// This rank's shard of a segment was loaded: gathers what is kept whole.
  void loaded(SegmentId segment, StreamView stream);
  /// What this rank updates of a segment is new: begins to make every copy on this rank new.
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
