
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint_weights.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using namespace checkpoint;
using model::ParameterSpec;

std::vector<ParameterSpec> parameters_of(const SavedModel& model) {
  std::vector<ParameterSpec> parameters;
  for (const TensorRecord& tensor : model.tensors) {
    parameters.push_back({tensor.name, tensor.shape, {}});
  }
  return parameters;
}

struct Problem {
  std::string text;
  ErrorCode code = ErrorCode::internal;
};
Problem problem_of(const Checkpoint& opened,
                   const std::string& state,
                   const std::vector<ParameterSpec>& parameters) {
  try {
    const CheckpointState source(opened, state, parameters);
  } catch (const Error& error) {
    return {error.what(), error.code()};
  }
  return {};
}

SavedModel model_of_two_states() {
  SavedModel model = random_model(3, 3, {10, 2000});
  model.bf16 = true;
  return model;
}

/// A checkpoint whose manifest does not name these states; its path.
std::filesystem::path save_without(const std::vector<std::string>& states,
                                   const std::filesystem::path& output,
                                   const SavedModel& model) {
  PendingCheckpoint pending(output, model.step);
  Manifest manifest = write_files(pending.path(), model);
  std::erase_if(manifest.states, [&](const StateRecord& state) {
    return std::ranges::find(states, state.name) != states.end();
  });
  pending.commit(manifest);
  return output / "checkpoint-12";
}

}  // namespace

TEST_CASE("CheckpointState: is a source of a model's parameters", "[checkpoint]") {
  const TempDir output;
  SavedModel model = random_model(3, 3, {10, 2000});
  model.bf16 = true;
  const Checkpoint opened(save(output.path(), model));
  const std::vector<ParameterSpec> parameters = parameters_of(model);
  for (const std::string state : {"fp32", "exp_avg", "weights"}) {
    const CheckpointState source(opened, state, parameters);
    const std::vector<float> all = values_of(model, state, "h.1.weight");
    std::vector<float> read(700);
    source.read(parameters[1], 650, read);
    CHECK(read == std::vector<float>(all.begin() + 650, all.begin() + 1350));
  }
}

TEST_CASE("CheckpointState: another model is refused by name", "[checkpoint]") {
  const TempDir output;
  const SavedModel model = random_model(3, 1, {10, 2000});
  const Checkpoint opened(save(output.path(), model));
  std::vector<ParameterSpec> parameters = parameters_of(model);
  CHECK(problem_of(opened, "fp32", parameters).text.empty());
  const Problem no_state = problem_of(opened, "momentum", parameters);
  CHECK(no_state.code == ErrorCode::input);
  CHECK_THAT(no_state.text, Catch::Matchers::EndsWith("checkpoint-12: has no state 'momentum'"));
  parameters[0].shape = {2, 5};
  parameters[1].name = "wte.weight";
  const Problem other_model = problem_of(opened, "fp32", parameters);
  CHECK(other_model.code == ErrorCode::config);
  CHECK_THAT(other_model.text,
             Catch::Matchers::EndsWith("is of another model:\n"
                                       "tensor 'h.0.weight' has shape (10), expected (2, 5)\n"
                                       "tensor 'h.1.weight' is not a parameter of this model\n"
                                       "tensor 'wte.weight' of shape (2000) is missing"));
}

TEST_CASE("CheckpointWeights: uses the most precise weights in the checkpoint", "[checkpoint]") {
  struct Row {
    std::vector<std::string> without;
    std::string state;  ///< expected
    DType dtype = DType::f32;
  };
  const auto row = GENERATE(Row{{}, "fp32", DType::f32}, Row{{"fp32"}, "weights", DType::bf16});
  const TempDir output;
  const SavedModel model = model_of_two_states();
  const std::vector<ParameterSpec> parameters = parameters_of(model);
  const CheckpointWeights weights(save_without(row.without, output.path(), model), parameters);
  CHECK(weights.dtype() == row.dtype);
  std::vector<float> read(2000);
  weights.read(parameters[1], 0, read);
  CHECK(read == values_of(model, row.state, "h.1.weight"));
}

TEST_CASE("CheckpointWeights: a checkpoint without any says so", "[checkpoint]") {
  const TempDir output;
  const SavedModel model = model_of_two_states();
  const auto saved = save_without({"fp32", "weights"}, output.path(), model);
  CHECK_THROWS_WITH(CheckpointWeights(saved, parameters_of(model)),
                    Catch::Matchers::ContainsSubstring("has neither a state 'fp32' nor 'weights'"));
}

TEST_CASE("Checkpoint: a missing state or parameter or file is named", "[checkpoint]") {
  const TempDir output;
  const Checkpoint opened(save(output.path(), random_model(3, 1, {10})));
  std::vector<float> values(4);
  CHECK_THROWS_WITH(opened.read("momentum", "h.0.weight", 0, values),
                    Catch::Matchers::ContainsSubstring("has no state 'momentum'"));
  CHECK_THROWS_WITH(opened.read("fp32", "wte", 0, values),
                    Catch::Matchers::ContainsSubstring("has no parameter 'wte'"));
  CHECK_THROWS_WITH(opened.read("fp32", "h.0.weight", 7, values),
                    Catch::Matchers::ContainsSubstring("check failed"));
  CHECK_THROWS_WITH(opened.read_text("../secret"),
                    Catch::Matchers::ContainsSubstring("not in the manifest"));
  CHECK_THROWS_WITH(Checkpoint(output.path() / "checkpoint-13"),
                    Catch::Matchers::ContainsSubstring("missing"));
}

}  // namespace dstrain::test
