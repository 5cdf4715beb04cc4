#include "zero/rank_states.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::zero {

RankStates::RankStates(std::span<const StateRun> runs,
                       const Offload& offload,
                       ResidentStates::Memory memory,
                       const DiskPlace* disk,
                       StreamView stream)
    : runs_(runs.begin(), runs.end()), resident_(runs, memory, stream) {
  const bool swaps =
      std::ranges::any_of(runs, [](const StateRun& run) { return run.home == MemoryTier::nvme; });
  if (!swaps) return;
  DSTRAIN_CHECK(disk != nullptr, "nowhere to swap to");
  swapped_.emplace(runs, offload, *disk, stream);
}

engine::StateStore& RankStates::home(int run) {
  if (runs_[static_cast<std::size_t>(run)].home == MemoryTier::nvme) return *swapped_;
  return resident_;
}

}  // namespace dstrain::zero
