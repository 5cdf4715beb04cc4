#include "zero/resident_states.h"

#include <algorithm>
#include <numeric>

#include "runtime/tensor/dtype.h"

namespace dstrain::zero {

Bytes ResidentStates::bytes(std::span<const std::int64_t> runs, std::size_t states) {
  return std::accumulate(runs.begin(), runs.end(), std::int64_t{0}) *
         static_cast<std::int64_t>(states) * size_of(DType::f32);
}

ResidentStates::ResidentStates(std::span<const std::int64_t> runs,
                               std::size_t states,
                               MemoryResource& memory,
                               StreamView stream)
    : memory_(bytes(runs, states), memory, stream) {
  std::span<float> rest = memory_.as<float>();
  std::fill(rest.begin(), rest.end(), 0.0F);
  for (const std::int64_t numel : runs) {
    std::vector<std::span<float>> run;
    for (std::size_t state = 0; state < states; ++state) {
      run.push_back(rest.first(static_cast<std::size_t>(numel)));
      rest = rest.subspan(static_cast<std::size_t>(numel));
    }
    runs_.push_back(std::move(run));
  }
}

std::span<const std::span<float>> ResidentStates::acquire(int index, StreamView /*stream*/) {
  return runs_[static_cast<std::size_t>(index)];
}

}  // namespace dstrain::zero
