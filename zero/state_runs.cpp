#include "zero/state_runs.h"

#include <algorithm>

#include "zero/stage_policy.h"

namespace dstrain::zero {
namespace {

/// Whether a value of one tier can be updated in place of one of the other.
bool same_place(MemoryTier a, MemoryTier b) {
  return a != MemoryTier::nvme && b != MemoryTier::nvme &&
         (a == MemoryTier::device) == (b == MemoryTier::device);
}

}  // namespace

std::vector<MemoryTier> parameter_homes(const FlatLayout& layout, const Offload& offload) {
  std::int64_t stays = offload.parameters == MemoryTier::nvme ? offload.parameters_in_host : 0;
  std::vector<MemoryTier> homes;
  for (const Segment& segment : layout.segments()) {
    const bool fits = segment.shard_numel <= stays;
    if (segment.persistent) {
      homes.push_back(MemoryTier::device);
    } else {
      if (fits) stays -= segment.shard_numel;
      homes.push_back(fits ? offload.staging : offload.parameters);
    }
  }
  return homes;
}

std::vector<MemoryTier> optimizer_homes(const FlatLayout& layout, const Offload& offload) {
  std::int64_t stays = 0;
  for (const Segment& segment : layout.segments()) stays += segment.shard_numel;
  stays -= static_cast<std::int64_t>(static_cast<double>(stays) * offload.optimizer_ratio);
  std::vector<MemoryTier> homes;
  for (const Segment& segment : layout.segments()) {
    const bool fits = segment.shard_numel <= stays;
    if (fits) stays -= segment.shard_numel;
    homes.push_back(fits ? MemoryTier::device : offload.optimizer);
  }
  return homes;
}

std::vector<StateRun> state_runs(const FlatLayout& layout, const StateRunOptions& options) {
  const std::vector<MemoryTier> homes = optimizer_homes(layout, options.offload);
  const std::vector<MemoryTier> parameters = parameter_homes(layout, options.offload);
  std::vector<StateRun> runs;
  for (std::size_t index = 0; index < layout.segments().size(); ++index) {
    const Segment& segment = layout.segments()[index];
    const bool shard = stage_policy(options.stage).shard_optimizer;
    const std::int64_t numel = shard ? segment.shard_numel : segment.numel;
    StateRun run{.segment = static_cast<int>(index), .home = homes[index]};
    run.master = layout.dtype() != DType::f32 || !same_place(run.home, parameters[index]);
    run.states = options.optimizer_states + (run.master ? 1 : 0);
    run.gradients = run.home == MemoryTier::nvme && options.offload.keeps_gradients;
    const std::int64_t most = run.home == MemoryTier::nvme ? options.offload.run_numel : numel;
    for (; run.offset < numel; run.offset += run.numel) {
      run.numel = std::min(most, numel - run.offset);
      runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace dstrain::zero
