#pragma once
#include <optional>
#include <vector>

#include "zero/resident_states.h"
#include "zero/swapped_states.h"

namespace dstrain::zero {

/// All optimizer states of a rank, each run where its home is. All must outlive it.
class RankStates final : public engine::StateStore {
 public:
  /// `disk`: where runs go whose home is nvme; it is not used when there are none.
  RankStates(std::span<const StateRun> runs,
             const Offload& offload,
             ResidentStates::Memory memory,
             const DiskPlace* disk,
             StreamView stream);

  engine::StateLease acquire(int run, engine::StateUse use, StreamView stream) override {
    return home(run).acquire(run, use, stream);
  }
  void release(int run, engine::StateUse use, StreamView stream) override {
    home(run).release(run, use, stream);
  }
  /// Those on a disk; null when there are none.
  [[nodiscard]] SwappedStates* swapped() { return swapped_ ? &*swapped_ : nullptr; }

 private:
  [[nodiscard]] engine::StateStore& home(int run);

  std::vector<StateRun> runs_;
  ResidentStates resident_;
  std::optional<SwappedStates> swapped_;
};

}  // namespace dstrain::zero
