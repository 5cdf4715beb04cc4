#pragma once
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/gradient_exchange.h"
#include "zero/gradient_reducer.h"
#include "zero/offloaded_gradients.h"

namespace dstrain::zero {

/// Stages 2 and 3: a rank keeps only its shard of the gradients. The backward of a unit writes into
/// a bucket, which is reduced over the ranks into the shards when it is full or backward ends. With
/// overlap there are two buckets: one is reduced while the next units fill the other. Tiles are
/// written while their unit's bucket is in use, so they have buckets of their own. Shared segments
/// stay outside the buckets until the last unit that uses them is done.
class ShardedGradients final : public GradientReducer {
 public:
  struct Options {
    /// Capacity of a bucket in elements; at least that of the largest part. 0: one part at a time.
    std::int64_t bucket_numel = 0;
    bool overlap = false;  ///< two buckets
  };
  /// `offloaded` takes the sums that collectives cannot write to `shards`; null: there are none.
  /// `buffers` is memory of the device, for the buckets.
  ShardedGradients(RankShards& shards,
                   Options options,
                   Communication communication,
                   OffloadedGradients* offloaded,
                   MemoryResource& buffers,
                   StreamView stream);
  /// Bytes of the buckets and of the copy that is sent.
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
    std::vector<SegmentId> complete;  ///< segments in it that are ready to be reduced
    Communication::Point emptied;     ///< set while it is being reduced
  };
  /// The buckets of units, or of tiles; they are filled in turns.
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
