#include "runtime/checkpoint/checkpoint_weights.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace dstrain::checkpoint {

const StateRecord& weights_of(const Checkpoint& checkpoint) {
  const std::vector<StateRecord>& states = checkpoint.manifest().states;
  for (const char* const name : {"fp32", "weights"}) {
    const auto found = std::ranges::find(states, name, &StateRecord::name);
    if (found != states.end()) return *found;
  }
  fail(ErrorCode::input, "{}: has neither a state 'fp32' nor 'weights'",
       checkpoint.path().string());
}

CheckpointWeights::CheckpointWeights(std::filesystem::path directory,
                                     std::span<const model::ParameterSpec> parameters)
    : checkpoint_(std::move(directory)),
      state_(checkpoint_, weights_of(checkpoint_).name, parameters) {}

void CheckpointWeights::read(const model::ParameterSpec& spec,
                             std::int64_t begin,
                             std::span<float> values) const {
  state_.read(spec, begin, values);
}

}  // namespace dstrain::checkpoint
