#include "zero/resident_states.h"

#include "runtime/tensor/dtype.h"

namespace dstrain::zero {
namespace {

Bytes bytes_of(const StateRun& run) {
  return run.states * run.numel * size_of(DType::f32);
}

Bytes host_bytes(std::span<const StateRun> runs) {
  return ResidentStates::bytes(runs, MemoryTier::host) +
         ResidentStates::bytes(runs, MemoryTier::pinned);
}

}  // namespace

Bytes ResidentStates::bytes(std::span<const StateRun> runs, MemoryTier tier) {
  Bytes bytes = 0;
  for (const StateRun& run : runs) bytes += run.home == tier ? bytes_of(run) : 0;
  return bytes;
}

ResidentStates::ResidentStates(std::span<const StateRun> runs, Memory memory, StreamView stream)
    : memory_(bytes(runs, MemoryTier::device), memory.device, stream),
      offloaded_(host_bytes(runs), memory.offloaded, stream) {
  Bytes next_here = 0;
  Bytes next_elsewhere = 0;
  for (const StateRun& run : runs) {
    std::vector<TensorView>& states = runs_.emplace_back();
    if (run.home == MemoryTier::nvme) continue;
    const bool here = run.home == MemoryTier::device;
    Bytes& next = here ? next_here : next_elsewhere;
    for (std::int64_t state = 0; state < run.states; ++state) {
      states.push_back((here ? memory_ : offloaded_).block().cut(next, DType::f32, {run.numel}));
      next += states.back().bytes();
    }
  }
}

engine::StateLease ResidentStates::acquire(int run,
                                           engine::StateUse /*use*/,
                                           StreamView /*stream*/) {
  return {runs_[static_cast<std::size_t>(run)]};
}

}  // namespace dstrain::zero
