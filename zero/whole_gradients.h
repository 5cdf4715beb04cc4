#pragma once
#include <optional>
#include <vector>

#include "runtime/tensor/buffer.h"
#include "zero/gradient_exchange.h"
#include "zero/gradient_reducer.h"
#include "zero/gradient_staging.h"
#include "zero/offloaded_gradients.h"

namespace dstrain::zero {

/// Stages 0 and 1: keeps the gradients of all parameters whole. Micro steps accumulate locally. In
/// the last micro step the gradients are summed over the ranks once, unit by unit as backward
/// proceeds: in place, or into this rank's shards if these are offloaded.
class WholeGradients final : public GradientReducer {
 public:
  /// The result of the sum over ranks that each rank keeps.
  enum class Result { whole, own_shard };
  struct Memory {
    MemoryResource& gradients;
    MemoryResource& buffers;  ///< both of the device
  };
  /// `offloaded` takes the sums that collectives cannot write to `shards`; null: there are none.
  WholeGradients(RankShards& shards,
                 Result result,
                 Communication communication,
                 OffloadedGradients* offloaded,
                 Memory memory,
                 StreamView stream);
  static Bytes bytes(const FlatLayout& layout, DType kept);
  /// Bytes of additional buffers.
  static Bytes buffer_bytes(const FlatLayout& layout, const config::StatePrecision& precision);

  void begin(engine::MicroStep micro_step) override;
  std::span<const model::GradientTarget> targets(model::PartId part, StreamView stream) override;
  void reduce(model::PartId part, StreamView stream) override;
  [[nodiscard]] TensorView own(SegmentId segment) const override;
  [[nodiscard]] TensorView updated(SegmentId segment) const override;

 private:
  void keep(std::span<const SegmentId> complete, StreamView stream);
  void reduce_segment(SegmentId segment);

  const FlatLayout& layout_;
  const RankShards& shards_;
  Result result_;
  Communication communication_;
  GradientExchange exchange_;
  OffloadedGradients* offloaded_;
  Buffer memory_;
  std::optional<GradientStaging> staging_;  ///< none if they are kept in f32
  TypedVector<SegmentId, TensorView> segments_;
  engine::MicroStep micro_step_;
  PendingUses pending_;
  GradientTargets targets_;
};

}  // namespace dstrain::zero
