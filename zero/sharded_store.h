#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/engine/parameter_store.h"
#include "zero/communication.h"
#include "zero/gradient_reducer.h"
#include "zero/offloaded_gradients.h"
#include "zero/overlap.h"
#include "zero/parameter_gathers.h"
#include "zero/parameter_sums.h"
#include "zero/rank_shards.h"

namespace dstrain::zero {

/// Splits parameters, gradients and updates over the ranks of one communicator by ZeRO stage. Each
/// rank holds a segment of the layout whole, or one shard of it:
///
///   stage  parameters  gradients kept  sum over the ranks            after the update
///   0      whole       whole           all-reduce, last micro step   -
///   1      whole       whole           reduce-scatter, last          all-gather
///   2      whole       shard           reduce-scatter, each          all-gather
///   3      shard       shard           reduce-scatter, each          all-gather on use
///
/// Persistent segments of stage 3 are kept whole, as in stage 2. Elements on the wire per step of
/// k micro steps: 2 psi for stages 0 and 1, (k + 1) psi for 2, 3 k psi for 3. Gradients are f32;
/// parameters have the model's dtype. In bf16 they are a rounded copy: the optimizer updates f32
/// masters of the elements that the rank updates, which are kept with its states. The host sums the
/// gradients and updates the parameters of offloaded segments; new values are copied from it.
class ShardedStore final : public engine::ParameterStore {
 public:
  struct Options {
    int stage = 0;
    std::int64_t reduce_bucket_numel = 0;  ///< see ShardedGradients::Options
    Overlap overlap{};
    Offload offload{};
    config::StatePrecision precision{};
  };
  struct Memory {
    RankShards::Memory shards;
    MemoryResource& buffers;  ///< of the device
  };
  /// All must outlive the store. Without parameter groups the store only serves parameters: it has
  /// no gradients and takes no steps.
  struct Inputs {
    const FlatLayout& layout;
    comm::Communicator& communicator;
    Memory memory;
    const optim::ParameterGroups* groups = nullptr;  ///< of the layout
    profile::Timeline* timeline = nullptr;           ///< null: nothing is recorded
  };
  /// `streams` may differ only if the options overlap.
  ShardedStore(const Inputs& inputs, const Options& options, Streams streams);
  ShardedStore(const ShardedStore&) = delete;
  ShardedStore& operator=(const ShardedStore&) = delete;
  ShardedStore(ShardedStore&&) = delete;
  ShardedStore& operator=(ShardedStore&&) = delete;
  /// Waits for work under way, which uses memory of the store.
  ~ShardedStore() override {
    communication_.stream().wait_until_idle();
    host_.wait_until_idle();
  }

  void load(const engine::StateSources& sources, StreamView stream) override;
  [[nodiscard]] std::vector<engine::SavedState> saved_states() const override;
  [[nodiscard]] std::vector<engine::ParameterSlice> saved_slices(int rank) const override;
  void copy_saved(engine::SaveTargetOf target_of) override;
  void expect(std::span<const model::PartId> parts, std::int64_t rounds) override;
  std::span<const TensorView> acquire(model::PartId part, StreamView stream) override;
  void release(model::PartId part, StreamView stream) override;
  std::span<const rules::ScalarValues> begin_step(const optim::StepScalars& scalars) override;
  void begin(engine::MicroStep micro_step) override;
  std::span<const model::GradientTarget> gradients(model::PartId part, StreamView stream) override;
  void reduce(model::PartId part, StreamView stream) override;
  void gather_totals(TensorView own, TensorView totals, StreamView stream) override;
  void step(const optim::StepTensors& step, StreamView stream) override;
  std::optional<std::string> last_not_finite(TensorView sum) override;

 private:
  void sum_squares(TensorView sum, StreamView stream);
  void measure(const optim::StepTensors& step, StreamView stream);
  void pass_over(SegmentId segment, LeaseUse pass, const optim::StepTensors& step);
  void pass_over_sub_group(SubGroupId id,
                           const RankShards::ParameterLease& parameters,
                           LeaseUse pass,
                           const optim::StepTensors& step);
  [[nodiscard]] optim::StepTensors host_tensors();
  [[nodiscard]] bool on_disk(SegmentId segment) const;
  std::optional<model::PartId>& part_in_use(model::PartId part) {
    return layout_.is_tile(part) ? tile_in_use_ : unit_in_use_;
  }

  const FlatLayout& layout_;
  const optim::ParameterGroups* groups_;
  profile::Timeline* timeline_;
  HostQueue host_;
  Communication communication_;
  RankShards shards_;
  ParameterGathers parameters_;
  std::unique_ptr<ParameterSums> sums_;            ///< null: no optimizer needs any
  std::unique_ptr<SubGroupUpdates> updates_;       ///< null: nothing is updated
  std::unique_ptr<OffloadedGradients> offloaded_;  ///< null: nothing needs it
  std::unique_ptr<GradientReducer> gradients_;
  TypedVector<optim::ParameterGroupId, rules::ScalarValues> scalars_;  ///< of the step
  // Host copies, for updates by the host:
  ops::StepDecision decision_;
  std::int64_t rounding_ = 0;
  ExactSum squares_;
  std::optional<model::PartId> unit_in_use_;  ///< without its tiles
  std::optional<model::PartId> tile_in_use_;
};

}  // namespace dstrain::zero
