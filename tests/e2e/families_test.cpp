// Runs of every family against transformers'; see make_families.py and make_pairs.py in
// tests/golden.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using nlohmann::json;
using test::worst_relative;

namespace {

json golden_of(const std::string& family) {
  return test::read_json(test::golden_folder / family / "run.json");
}

std::string any_family() {
  const auto [kind, name] = GENERATE(table<std::string, std::string>({{"families", "llama2"},
                                                                      {"families", "llama3"},
                                                                      {"families", "llama_linear"},
                                                                      {"families", "llama_yarn"},
                                                                      {"families", "mistral"},
                                                                      {"families", "qwen2"},
                                                                      {"families", "qwen3"},
                                                                      {"families", "phi3"},
                                                                      {"families", "phi3_longrope"},
                                                                      {"families", "gpt2_options"},
                                                                      {"families", "gpt2_relu"},
                                                                      {"pairs", "t5"},
                                                                      {"pairs", "t5_gated"},
                                                                      {"pairs", "t5_unscaled"}}));
  return kind + "/" + name;
}

struct Place {
  int ranks = 1;
  json more{};  ///< of the configuration
  std::vector<std::string> arguments{};
};

std::vector<json> run_steps(const json& golden, const Place& place) {
  const test::TempDir folder;
  json config = golden.at("ds_config");
  config.merge_patch(place.more);
  auto arguments = golden.at("arguments").get<std::vector<std::string>>();
  arguments.insert(arguments.end(), place.arguments.begin(), place.arguments.end());
  test::TrainRun run = test::run_train(place.ranks, config, folder.path() / "out", arguments);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  REQUIRE(run.metrics.size() == golden.at("steps").size());
  return std::move(run.metrics);
}

std::vector<double> losses(const std::vector<json>& steps) {
  std::vector<double> values;
  for (const json& step : steps) values.push_back(step.at("loss"));
  return values;
}

json stage(int number) {
  return {{"zero_optimization", {{"stage", number}, {"stage3_param_persistence_threshold", 300}}}};
}

}  // namespace

TEST_CASE("Families: every stage and rank count follows transformers", "[e2e][golden]") {
  const std::string family = any_family();
  const int ranks = GENERATE(1, 2, 3);
  const json golden = golden_of(family);
  std::vector<double> first;
  for (const int number : {0, 1, 2, 3}) {
    if (ranks == 1 && (number == 1 || number == 2)) continue;  // nothing is shared out
    CAPTURE(family, ranks, number);
    const std::vector<json> steps = run_steps(golden, {ranks, stage(number)});
    CHECK(worst_relative(steps, golden.at("steps"), "loss") < 1e-5);
    CHECK(worst_relative(steps, golden.at("steps"), "grad_norm") < 1e-4);
    if (first.empty()) first = losses(steps);
    CHECK(losses(steps) == first);
  }
}

TEST_CASE("Families: 16-bit runs differ at most twice as much as PyTorch's", "[e2e][golden]") {
  const std::string family = any_family();
  struct Half {
    std::string name;
    double loss;  ///< twice what PyTorch is apart at most, but in a family that says more
    double norm;
  };
  const auto half = GENERATE(Half{"bf16", 8.2e-4, 1.1e-2}, Half{"fp16", 1.5e-4, 1.8e-3});
  const json golden = golden_of(family);
  json more = stage(3);
  more[half.name]["enabled"] = true;
  CAPTURE(family, half.name);
  const std::vector<json> steps = run_steps(golden, {2, more});
  const json& apart = golden.at("apart").at(half.name);
  CHECK(worst_relative(steps, golden.at("steps"), "loss") <
        std::max(half.loss, 2 * apart.at("loss").get<double>()));
  CHECK(worst_relative(steps, golden.at("steps"), "grad_norm") <
        std::max(half.norm, 2 * apart.at("grad_norm").get<double>()));
}

TEST_CASE("Families: memory-saving settings do not change results", "[e2e][golden]") {
  const std::string family = any_family();
  const json golden = golden_of(family);
  CAPTURE(family);
  const std::vector<double> plain = losses(run_steps(golden, {2, stage(3)}));
  json offload = stage(3);
  offload["zero_optimization"]["offload_param"] = {{"device", "cpu"}};
  offload["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  CHECK(losses(run_steps(golden, {2, offload, {"--gradient_checkpointing"}})) == plain);
  for (const Place& place : {Place{2, stage(3), {"--tiled_linear_in_splits", "3"}},
                             Place{1, {{"train_micro_batch_size_per_gpu", 2}}}}) {
    const std::vector<json> steps = run_steps(golden, place);
    CHECK(worst_relative(steps, golden.at("steps"), "loss") < 1e-5);
  }
}

TEST_CASE("Families: a trained model can be trained further", "[e2e][golden]") {
  const std::string family =
      GENERATE("families/llama2", "families/llama3", "families/qwen3", "families/phi3",
               "families/gpt2_options", "pairs/t5", "pairs/t5_gated", "pairs/t5_unscaled");
  const json golden = golden_of(family);
  const test::TempDir folder;
  auto arguments = golden.at("arguments").get<std::vector<std::string>>();
  CAPTURE(family);
  arguments.insert(arguments.end(), {"--max_steps", "3"});
  const auto at = std::find(arguments.begin(), arguments.end(), "--max_steps");
  arguments.erase(at, at + 2);
  const test::TrainRun run =
      test::run_train(2, golden.at("ds_config"), folder.path() / "out", arguments);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const auto model = std::find(arguments.begin(), arguments.end(), "--model_name_or_path");
  *(model + 1) = (folder.path() / "out").string();
  const test::TrainRun next =
      test::run_train(1, golden.at("ds_config"), folder.path() / "next", arguments);
  CAPTURE(next.err);
  REQUIRE(next.status == 0);
  // The same samples again: the model has learnt from them.
  CHECK(next.metrics[0].at("loss").get<double>() < run.metrics[0].at("loss").get<double>());
}
