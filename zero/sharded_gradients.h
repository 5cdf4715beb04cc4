#pragma once
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/gradient_exchange.h"
#include "zero/gradient_reducer.h"
#include "zero/offloaded_gradients.h"

namespace dstrain::zero {

/// Stages 2 and 3: a rank keeps its shard of the gradients. The backward of a unit writes into a
/// bucket; the bucket is reduced over the ranks, into the shards, when it is full or the backward
/// ends. When communication overlaps there are two: one is reduced while the next units fill the
/// other. Tiles, which come and go while their unit's bucket is being written, have buckets of
/// their own. Shared segments wait outside the buckets until the last unit that uses them is done.
class ShardedGradients final : public GradientReducer {
 public:
  struct Options {
    /// Elements that a bucket holds back; at least the largest part's. 0: one part at a time.
    std::int64_t bucket_numel = 0;
    bool overlap = false;  ///< two buckets
  };
  /// `offloaded` takes what communication cannot put in `shards`; null: nothing. `buffers`: of the
  /// device, for the buckets.
  ShardedGradients(RankShards& shards,
                   Options options,
                   Communication communication,
                   OffloadedGradients* offloaded,
                   MemoryResource& buffers,
                   StreamView stream);
  /// Of the buckets, and of what is sent.
  static Bytes buffer_bytes(const FlatLayout& layout,
                            Options options,
                            const config::StatePrecision& precision);

  void begin(engine::MicroStep micro_step) override;
  std::span<const model::GradientTarget> targets(model::PartId part, StreamView stream) override;
  void reduce(model::PartId part, StreamView stream) override;
  [[nodiscard]] TensorView own(SegmentId segment) const override {
    return shards_.gradients(segment);
  }
  [[nodiscard]] TensorView updated(SegmentId segment) const override { return own(segment); }

 private:
  struct Bucket {
    TensorView memory;
    std::int64_t used = 0;            ///< elements
    std::vector<SegmentId> complete;  ///< segments in it that wait to be reduced
    Communication::Point emptied;     ///< set while it is being reduced
  };
  /// The buckets of units, or of tiles: one is filled after the other.
  struct Buckets {
    std::int64_t capacity = 0;  ///< elements of each
    std::vector<Bucket> all{};
    std::size_t filling = 0;  ///< index of the bucket being filled
    Bucket& current() { return all[filling]; }
  };
  Buckets& buckets_of(model::PartId part) { return layout_.is_tile(part) ? tiles_ : units_; }
  void cut_buckets();
  void place(model::PartId part, StreamView stream);
  TensorView place_in_bucket(Bucket& bucket, std::int64_t numel, StreamView stream);
  [[nodiscard]] Communication::Point reduced() const;
  void reduce_segment(SegmentId segment);
  void flush(Buckets& buckets, StreamView stream);

  const FlatLayout& layout_;
  const RankShards& shards_;
  Options options_;
  Communication communication_;
  GradientExchange exchange_;
  OffloadedGradients* offloaded_;
  Buffer bucket_memory_;
  Buckets units_;
  Buckets tiles_;
  TypedVector<SegmentId, TensorView> whole_;  ///< while its gradients are being written
  TypedVector<SegmentId, Communication::Point> shared_reduced_;
  engine::MicroStep micro_step_;
  PendingUses pending_;
  int parts_left_ = 0;
  GradientTargets targets_;
};

}  // namespace dstrain::zero
