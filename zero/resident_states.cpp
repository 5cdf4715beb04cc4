#include "zero/resident_states.h"

#include <algorithm>

#include "runtime/tensor/dtype.h"

namespace dstrain::zero {
namespace {

bool is_offloaded(const StateRun& run) {
  return run.home != MemoryTier::device;
}

}  // namespace

Bytes ResidentStates::bytes(std::span<const StateRun> runs, bool offloaded) {
  Bytes bytes = 0;
  for (const StateRun& run : runs) {
    if (is_offloaded(run) == offloaded) bytes += run.states * run.numel * size_of(DType::f32);
  }
  return bytes;
}

ResidentStates::ResidentStates(std::span<const StateRun> runs, Memory memory, StreamView stream)
    : memory_(bytes(runs, false), memory.device, stream),
      offloaded_(bytes(runs, true), memory.offloaded, stream) {
  std::span<float> here = memory_.as<float>();
  std::span<float> elsewhere = offloaded_.as<float>();
  std::ranges::fill(here, 0.0F);
  std::ranges::fill(elsewhere, 0.0F);
  for (const StateRun& run : runs) {
    std::span<float>& rest = is_offloaded(run) ? elsewhere : here;
    std::vector<std::span<float>>& states = runs_.emplace_back();
    for (std::int64_t state = 0; state < run.states; ++state) {
      states.push_back(rest.first(static_cast<std::size_t>(run.numel)));
      rest = rest.subspan(static_cast<std::size_t>(run.numel));
    }
  }
}

std::span<const std::span<float>> ResidentStates::acquire(int run, StreamView /*stream*/) {
  return runs_[static_cast<std::size_t>(run)];
}

}  // namespace dstrain::zero
