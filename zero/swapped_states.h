#pragma once
#include <optional>
#include <span>
#include <vector>

#include "offload/record_swap.h"
#include "runtime/engine/state_store.h"
#include "runtime/optim/exact_sum.h"
#include "zero/disk_place.h"
#include "zero/gradient_sink.h"
#include "zero/state_runs.h"

namespace dstrain::zero {

/// Optimizer states that lie on a disk, each run with its gradients in one record: gradients are
/// written as they are summed; a step reads a run with the next one behind it, and writes back the
/// states alone. All must outlive it.
class SwappedStates final : public engine::StateStore, public GradientSink {
 public:
  SwappedStates(std::span<const StateRun> runs,
                const Offload& offload,
                const DiskPlace& place,
                StreamView stream);
  static Bytes gradient_bytes(std::span<const StateRun> runs);
  static Bytes state_bytes(std::span<const StateRun> runs);
  static Bytes buffer_bytes(std::span<const StateRun> runs, const Offload& offload);

  engine::StateLease acquire(int run, engine::StateUse use, StreamView stream) override;
  void release(int run, engine::StateUse use, StreamView stream) override;
  void begin(engine::MicroStep micro_step) override;
  void put(int segment, std::span<const float> gradients) override;
  [[nodiscard]] const optim::ExactSum& squares() const override { return squares_; }

 private:
  [[nodiscard]] offload::FileRange read_range(int run, engine::StateUse use) const;
  [[nodiscard]] std::optional<int> next_run(int run) const;
  void put_run(int run, std::span<const float> gradients);

  std::vector<StateRun> runs_;
  bool read_ahead_;
  offload::RecordSwap swap_;              ///< a record per run
  std::vector<std::span<float>> states_;  ///< of the run in use
  engine::MicroStep micro_step_;
  optim::ExactSum squares_;
};

}  // namespace dstrain::zero
