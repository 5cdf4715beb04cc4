#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"

namespace dstrain::checkpoint {
namespace {

/// How the tensors differ from `parameters`, a line each.
std::vector<std::string> differences(const Manifest& manifest,
                                     std::span<const model::ParameterSpec> parameters) {
  std::vector<std::string> problems;
  std::unordered_map<std::string_view, const Shape*> wanted;
  for (const model::ParameterSpec& spec : parameters) wanted.emplace(spec.name, &spec.shape);
  for (const TensorRecord& tensor : manifest.tensors) {
    const auto found = wanted.find(tensor.name);
    if (found == wanted.end()) {
      problems.push_back(fmt::format("tensor '{}' is no parameter of this model", tensor.name));
      continue;
    }
    if (tensor.shape != *found->second) {
      problems.push_back(fmt::format("tensor '{}' has shape {}, expected {}", tensor.name,
                                     to_string(tensor.shape), to_string(*found->second)));
    }
    wanted.erase(found);
  }
  for (const model::ParameterSpec& spec : parameters) {
    if (wanted.contains(spec.name)) {
      problems.push_back(
          fmt::format("tensor '{}' of shape {} is missing", spec.name, to_string(spec.shape)));
    }
  }
  return problems;
}

}  // namespace

CheckpointState::CheckpointState(const Checkpoint& checkpoint,
                                 std::string state,
                                 std::span<const model::ParameterSpec> parameters)
    : checkpoint_(checkpoint), state_(std::move(state)) {
  if (!checkpoint.has_state(state_)) {
    fail(ErrorCode::input, "{}: has no state '{}'", checkpoint.path().string(), state_);
  }
  const std::vector<std::string> problems = differences(checkpoint.manifest(), parameters);
  if (problems.empty()) return;
  constexpr std::size_t listed_max = 5;
  const std::span listed = std::span(problems).first(std::min(problems.size(), listed_max));
  const std::size_t more = problems.size() - listed.size();
  fail(ErrorCode::input, "{}: is of another model:\n{}{}", checkpoint.path().string(),
       fmt::join(listed, "\n"), more > 0 ? fmt::format("\n... and {} more", more) : "");
}

void CheckpointState::read(const model::ParameterSpec& spec,
                           std::int64_t begin,
                           std::span<float> values) const {
  checkpoint_.read(state_, spec.name, begin, values);
}

}  // namespace dstrain::checkpoint
