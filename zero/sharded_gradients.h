#pragma once
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/communication.h"
#include "zero/gradient_reducer.h"
#include "zero/gradient_shards.h"
#include "zero/swapped_gradients.h"

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
    bool overlap = false;                 ///< two buckets
    std::span<const MemoryTier> homes{};  ///< of the shards, per segment
    SwappedGradients* swapped = nullptr;  ///< for those on a disk
  };
  struct Memory {
    MemoryResource& gradients;  ///< the shards
    MemoryResource& offloaded;  ///< those that are not on the device
    MemoryResource& buffers;    ///< the buckets
  };
  ShardedGradients(const FlatLayout& layout,
                   Options options,
                   Communication communication,
                   Memory memory,
                   StreamView stream);
  static Bytes bucket_bytes(const FlatLayout& layout, Options options);

  void begin(engine::MicroStep micro_step) override;
  std::span<const model::GradientTarget> targets(int part, StreamView stream) override;
  void reduce(int part, StreamView stream) override;
  [[nodiscard]] TensorView own(int segment) const override;
  [[nodiscard]] TensorView updated(int segment) const override { return own(segment); }

 private:
  struct Bucket {
    TensorView memory;
    std::int64_t used = 0;         ///< elements
    std::vector<int> complete;     ///< segments in it that wait to be reduced
    Communication::Point emptied;  ///< set while it is being reduced
  };
  /// The buckets that are filled in turns.
  struct Turns {
    std::int64_t capacity = 0;  ///< elements of each
    std::vector<Bucket> buckets{};
    std::size_t filling = 0;  ///< index of the bucket being filled
    Bucket& current() { return buckets[filling]; }
  };
  Turns& turns_of(int part) { return layout_.is_tile(part) ? tiles_ : units_; }
  void cut_buckets();
  void place(int part, StreamView stream);
  TensorView place_in_bucket(Bucket& bucket, std::int64_t numel, StreamView stream);
  [[nodiscard]] Communication::Point reduced() const;
  void reduce_segment(int index);
  void flush(Turns& turns, StreamView stream);

  const FlatLayout& layout_;
  Options options_;
  Communication communication_;
  GradientShards shards_;
  GradientShards offloaded_;
  Buffer bucket_memory_;
  Turns units_;
  Turns tiles_;
  std::vector<TensorView> whole_;  ///< per segment, while its gradients are being written
  std::vector<Communication::Point> shared_reduced_;  ///< per segment
  engine::MicroStep micro_step_;
  PendingUses pending_;
  int parts_left_ = 0;
  GradientTargets targets_;
};

}  // namespace dstrain::zero
