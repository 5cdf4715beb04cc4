// Losses, norms and rates against PyTorch's; see tests/golden/README.md.
#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"
#include "tests/support/strict_safetensors.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using nlohmann::json;
using test::golden_folder;

namespace {

double worst_relative(const std::vector<json>& found, const json& expected, const char* key) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double truth = expected[i].at(key).get<double>();
    const double error = std::abs(found[i].at(key).get<double>() - truth) / truth;
    if (!(error <= worst)) worst = error;  // a NaN stays
  }
  return worst;
}

struct Place {
  int ranks = 1;
  int stage = 0;
  bool bf16 = false;
};

test::TrainRun run_case(const json& golden, Place place, const test::TempDir& folder) {
  const auto [ranks, stage, bf16] = place;
  json config = golden.at("ds_config");
  config["zero_optimization"]["stage"] = stage;
  config["bf16"]["enabled"] = bf16;
  if (stage == 3) config["zero_optimization"]["stage3_param_persistence_threshold"] = 300;
  return test::run_train(ranks, config, folder.path() / "out", golden.at("arguments"));
}

}  // namespace

TEST_CASE("train: every stage and rank count follows PyTorch", "[e2e][golden]") {
  const std::string name = GENERATE("plain", "accumulation", "weight_decay", "clipping",
                                    "everything", "one_cycle", "lamb");
  const int ranks = GENERATE(1, 2, 3);
  const json golden = test::read_json(golden_folder / (name + ".json"));
  const test::TempDir folder;
  for (const int stage : {0, 1, 2, 3}) {
    if (ranks == 1 && (stage == 1 || stage == 2)) continue;  // nothing is shared out
    CAPTURE(name, ranks, stage);
    const test::TrainRun run = run_case(golden, {ranks, stage}, folder);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const json& steps = golden.at("steps");
    REQUIRE(run.metrics.size() == steps.size());
    CHECK(worst_relative(run.metrics, steps, "loss") < 1e-5);
    CHECK(worst_relative(run.metrics, steps, "grad_norm") < 1e-4);
    CHECK(worst_relative(run.metrics, steps, "learning_rate") < 1e-12);
  }
}

TEST_CASE("train: completions of JSON lines follow transformers", "[e2e][golden]") {
  const std::string name = GENERATE("records_packed", "records_unpacked");
  const int ranks = GENERATE(1, 2);
  const json golden = test::read_json(golden_folder / (name + ".json"));
  const test::TempDir folder;
  json config = golden.at("ds_config");
  config["zero_optimization"]["stage"] = 2;
  const test::TrainRun run =
      test::run_train(ranks, config, folder.path() / "out", golden.at("arguments"),
                      {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}});
  CAPTURE(name, ranks, run.err);
  REQUIRE(run.status == 0);
  const json& steps = golden.at("steps");
  REQUIRE(run.metrics.size() == steps.size());
  CHECK(worst_relative(run.metrics, steps, "loss") < 1e-5);
  CHECK(worst_relative(run.metrics, steps, "grad_norm") < 1e-4);
  CHECK_THAT(run.err, Catch::Contains("2 of 150 records are longer than block_size 32"));
  CHECK_THAT(run.err, Catch::Contains("1 of 150 records have no label that counts"));
}

TEST_CASE("train: bad JSON lines are told before a rank starts", "[e2e][golden]") {
  const test::TempDir folder;
  const std::filesystem::path path = folder.path() / "d.jsonl";
  const auto train = [&](const std::string& lines) {
    std::ofstream(path) << lines;
    return test::run_train(
        2, nullptr, folder.path() / "out",
        {"--model_name_or_path", "byte_model", "--train_file", path.string(), "--max_steps", "1"},
        {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}});
  };
  const test::TrainRun chat =
      train("{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}\n");
  CHECK(chat.status == 2);
  CHECK_THAT(chat.err, Catch::Contains("d.jsonl:1: messages: the byte tokenizer has no chat "
                                       "template") &&
                           !Catch::Contains("rank "));
  const test::TrainRun broken = train("{\"text\": \"a\"}\n{\"text\": \"b\"\n");
  CHECK(broken.status == 2);
  CHECK_THAT(broken.err, Catch::Contains("d.jsonl:2:") && !Catch::Contains("rank "));
}

TEST_CASE("train: bf16 stays within its tolerance of PyTorch in float64", "[e2e][golden]") {
  // Twice what PyTorch's own bf16 runs are apart: see tests/golden/README.md.
  constexpr double loss_tolerance = 5e-4;
  constexpr double norm_tolerance = 8e-3;
  const std::string name = GENERATE("plain", "everything", "lamb");
  const int ranks = GENERATE(1, 2, 3);
  const json golden = test::read_json(golden_folder / (name + ".json"));
  const test::TempDir folder;
  for (const int stage : {0, 1, 2, 3}) {
    if (ranks == 1 && (stage == 1 || stage == 2)) continue;  // nothing is shared out
    CAPTURE(name, ranks, stage);
    const test::TrainRun run = run_case(golden, {ranks, stage, true}, folder);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const json& steps = golden.at("steps");
    REQUIRE(run.metrics.size() == steps.size());
    CHECK(worst_relative(run.metrics, steps, "loss") < loss_tolerance);
    CHECK(worst_relative(run.metrics, steps, "grad_norm") < norm_tolerance);
    CHECK(worst_relative(run.metrics, steps, "loss") > 1e-5);  // it is no fp32 run
  }
}

TEST_CASE("train: the stages leave the same model file", "[e2e][golden]") {
  const bool bf16 = GENERATE(false, true);
  const json golden = test::read_json(golden_folder / "clipping.json");
  const test::TempDir folder;
  const std::filesystem::path weights = folder.path() / "out/model.safetensors";
  REQUIRE(run_case(golden, {2, 0, bf16}, folder).status == 0);
  const std::string reference = test::read_bytes(weights);
  const std::size_t data_bytes = 65'856 * (bf16 ? 2 : 4);
  CHECK(reference.size() > data_bytes);
  CHECK(reference.size() < data_bytes + 8192);
  CHECK(test::safetensors_faults(weights).empty());
  for (const int stage : {1, 2, 3}) {
    REQUIRE(run_case(golden, {2, stage, bf16}, folder).status == 0);
    CHECK((test::read_bytes(weights) == reference));
  }
}
