#include "runtime/checkpoint/checkpoint_weights.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/model/finite_values.h"

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

std::vector<model::CompanionFile> companions_of(const Checkpoint& checkpoint) {
  std::vector<model::CompanionFile> files;
  for (const FileRecord& file : checkpoint.manifest().files) {
    if (!model::is_companion(file.path)) continue;
    if (file.bytes > model::companion_bytes_max) {
      fail(ErrorCode::input, "{}: {} is more than the {} allowed for such a file",
           (checkpoint.path() / file.path).string(), format_bytes(file.bytes),
           format_bytes(model::companion_bytes_max));
    }
    files.push_back({file.path, checkpoint.read_text(file.path)});
  }
  return files;
}

CheckpointWeights::CheckpointWeights(std::filesystem::path directory,
                                     std::span<const model::ParameterSpec> parameters)
    : checkpoint_(std::move(directory)),
      state_(checkpoint_, weights_of(checkpoint_).name, parameters) {}

void CheckpointWeights::read(const model::ParameterSpec& spec,
                             std::int64_t begin,
                             std::span<float> values) const {
  state_.read(spec, begin, values);
  const std::int64_t bad = model::find_not_finite(begin, values);
  if (bad < 0) return;
  const Manifest& manifest = checkpoint_.manifest();
  const StateRecord& state = weights_of(checkpoint_);
  const auto tensor = std::ranges::find(manifest.tensors, spec.name, &TensorRecord::name);
  const auto slice = std::ranges::upper_bound(tensor->slices, bad, {}, &Slice::end);
  fail(ErrorCode::input,
       "{}: '{}.{}' holds {} at {}: weights must be finite; give a checkpoint that is sound",
       (checkpoint_.path() / manifest.shard_path(state, slice->rank)).string(), state.name,
       spec.name, values[static_cast<std::size_t>(bad - begin)],
       model::index_text(spec.shape, bad));
}

}  // namespace dstrain::checkpoint
