#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/parameter_store.h"
#include "runtime/engine/state_store.h"
#include "zero/communication.h"
#include "zero/gradient_reducer.h"
#include "zero/overlap.h"
#include "zero/parameter_shards.h"
#include "zero/swapped_gradients.h"

namespace dstrain::zero {

/// Parameters, gradients and updates split over the ranks of one communicator as a ZeRO stage
/// says. A layout's segment is whole on each rank, or one shard of it is:
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
/// masters of what the rank updates, which lie among its states. What is offloaded lies with the
/// host: there gradients are summed and parameters updated, from there new values are copied.
class ShardedStore final : public engine::ParameterStore {
 public:
  struct Options {
    int stage = 0;
    std::int64_t reduce_bucket_numel = 0;  ///< see ShardedGradients::Options
    Overlap overlap{};
    Offload offload{};
  };
  struct Memory {
    MemoryResource& parameters;
    MemoryResource& gradients;
    MemoryResource& buffers;
    MemoryResource& offloaded_parameters;
    MemoryResource& offloaded_gradients;
    const DiskPlace* parameter_disk = nullptr;  ///< for shards on a disk
    SwappedStates* swapped_states = nullptr;    ///< for gradients on a disk
  };
  /// All must outlive the store. Without an optimizer the store only serves parameters: it has no
  /// gradients and takes no steps.
  struct Parts {
    const FlatLayout& layout;
    comm::Communicator& communicator;
    Memory memory;
    const optim::Optimizer* optimizer = nullptr;
    engine::StateStore* states = nullptr;   ///< of state_runs()
    profile::Timeline* timeline = nullptr;  ///< null: nothing is recorded
  };
  /// Two different streams are for options that overlap.
  ShardedStore(Parts parts, Options options, Streams streams);
  ShardedStore(const ShardedStore&) = delete;
  ShardedStore& operator=(const ShardedStore&) = delete;
  ShardedStore(ShardedStore&&) = delete;
  ShardedStore& operator=(ShardedStore&&) = delete;
  /// Waits for work under way: it uses memory of the store.
  ~ShardedStore() override {
    communication_.stream().wait_until_idle();
    host_.wait_until_idle();
  }

  void load(const engine::StateSources& sources, StreamView stream) override;
  [[nodiscard]] std::vector<engine::SavedState> saved_states() const override;
  [[nodiscard]] std::vector<engine::ParameterSlice> saved_slices(int rank) const override;
  void visit_saved(engine::SavedVisitor visit, StreamView stream) override;
  void expect(std::span<const int> parts, std::int64_t rounds) override;
  std::span<const TensorView> acquire(int part, StreamView stream) override;
  void release(int part, StreamView stream) override;
  void begin_step(const optim::StepScalars& foreseen) override;
  void begin(engine::MicroStep micro_step) override;
  std::span<const model::GradientTarget> gradients(int part, StreamView stream) override;
  void reduce(int part, StreamView stream) override;
  ExactSum gradient_squares(TensorView sum, StreamView stream) override;
  void step(const optim::StepScalars& scalars, StreamView stream) override;

 private:
  void load_run(int run, const engine::StateSources& sources, StreamView stream);
  std::vector<TensorView> saved_values(const StateRun& run, std::span<const TensorView> states);
  void load_state(const StateRun& run,
                  const model::ParameterSource& source,
                  TensorView values,
                  StreamView stream);
  void update(int run, const optim::StepScalars& scalars, StreamView stream);
  [[nodiscard]] TensorView gradients_of(const StateRun& run) const;
  [[nodiscard]] bool completes_segment(std::size_t run) const;
  int& lease(int part) { return leased_.at(parts_.layout.is_tile(part) ? 1 : 0); }

  Parts parts_;
  HostQueue host_;
  Communication communication_;
  std::vector<StateRun> runs_;
  std::vector<MemoryTier> gradient_homes_;  ///< per segment
  ParameterShards parameters_;
  std::unique_ptr<SwappedGradients> swapped_;  ///< null: nothing lies on a disk
  std::unique_ptr<GradientReducer> gradients_;
  static constexpr int nothing = -1;
  std::array<int, 2> leased_{nothing, nothing};  ///< the unit's part and the tile that are in use
};

}  // namespace dstrain::zero
