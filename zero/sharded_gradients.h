#pragma once
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/device/buffer.h"
#include "zero/gradient_reducer.h"

namespace dstrain::zero {

/// Stages 2 and 3: a rank keeps its shard of the gradients. The backward of a unit writes into a
/// bucket; the bucket is reduced over the ranks, into the shards, when it is full or the backward
/// ends. Shared segments wait outside the bucket until the last unit that uses them is done.
class ShardedGradients final : public GradientReducer {
 public:
  struct Options {
    /// Elements that a bucket holds back; at least the largest unit's. 0: one unit at a time.
    std::int64_t bucket_numel = 0;
  };
  struct Memory {
    MemoryResource& gradients;  ///< the shards
    MemoryResource& buffers;    ///< the bucket
  };
  ShardedGradients(const FlatLayout& layout,
                   Options options,
                   comm::Communicator& communicator,
                   Memory memory,
                   StreamView stream);
  static Bytes shard_bytes(const FlatLayout& layout);
  static Bytes bucket_bytes(const FlatLayout& layout, Options options);

  void begin(engine::MicroStep micro_step) override;
  std::span<const model::GradientTarget> targets(int unit, StreamView stream) override;
  void reduce(int unit, StreamView stream) override;
  [[nodiscard]] std::span<float> own(int segment) const override;
  [[nodiscard]] std::span<float> updated(int segment) const override { return own(segment); }

 private:
  void place(int unit, StreamView stream);
  void reduce_segment(int index, StreamView stream);
  void flush(StreamView stream);

  const FlatLayout& layout_;
  Options options_;
  comm::Communicator& communicator_;
  Buffer shard_memory_;
  Buffer bucket_memory_;
  std::int64_t bucket_capacity_;
  std::vector<std::span<float>> shards_;  ///< per segment
  std::vector<std::span<float>> whole_;   ///< per segment, while its gradients are being written
  std::vector<int> filled_;               ///< complete segments in the bucket
  std::int64_t bucket_used_ = 0;
  engine::MicroStep micro_step_;
  PendingUses pending_;
  int units_left_ = 0;
  std::vector<bool> written_;  ///< per parameter, in this micro step
  std::vector<model::GradientTarget> targets_;
};

}  // namespace dstrain::zero
