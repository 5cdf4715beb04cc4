#include "zero/state_runs.h"

#include "zero/stage_policy.h"

namespace dstrain::zero {
namespace {

/// Whether a value of one tier can be used in place of one of the other.
bool same_place(MemoryTier a, MemoryTier b) {
  return (a == MemoryTier::device) == (b == MemoryTier::device);
}

}  // namespace

MemoryTier parameter_home(const Segment& segment, const Offload& offload) {
  return segment.persistent ? MemoryTier::device : offload.parameters;
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
  std::vector<StateRun> runs;
  for (std::size_t index = 0; index < layout.segments().size(); ++index) {
    const Segment& segment = layout.segments()[index];
    StateRun run{
        .segment = static_cast<int>(index),
        .numel = stage_policy(options.stage).shard_optimizer ? segment.shard_numel : segment.numel,
        .home = homes[index]};
    run.master = layout.dtype() != DType::f32 ||
                 !same_place(run.home, parameter_home(segment, options.offload));
    run.states = options.optimizer_states + (run.master ? 1 : 0);
    runs.push_back(run);
  }
  return runs;
}

}  // namespace dstrain::zero
