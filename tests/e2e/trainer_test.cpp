// Whole commands with options of Hugging Face's Trainer, beside that: tests/golden/make_trainer.py.
#include <map>

#include <fcntl.h>

#include <nlohmann/json.hpp>

#include "runtime/safetensors/file.h"
#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Approx;
using nlohmann::json;

namespace {

/// The Trainer ran in float64.
constexpr double loss_tolerance = 1e-5;
constexpr double norm_tolerance = 1e-4;
constexpr double weight_tolerance = 2e-4;

/// The rows of a run that have `key`, by their step.
std::map<std::int64_t, json> rows_with(const char* key, const std::vector<json>& rows) {
  std::map<std::int64_t, json> found;
  for (const json& row : rows) {
    if (row.contains(key)) found.emplace(row.at("step"), row);
  }
  return found;
}

void check_step(const json& found, const json& truth) {
  CHECK(found.at("epoch") == Approx(truth.at("epoch").get<double>()).epsilon(1e-12));
  CHECK(found.at("loss") == Approx(truth.at("loss").get<double>()).epsilon(loss_tolerance));
  CHECK(found.at("learning_rate") ==
        Approx(truth.at("learning_rate").get<double>()).epsilon(1e-12));
  if (!truth.contains("grad_norm")) return;  // the Trainer measures it only to clip
  CHECK(found.at("grad_norm") ==
        Approx(truth.at("grad_norm").get<double>()).epsilon(norm_tolerance));
}

/// As sample() of make_trainer.py: four values from the first to the last.
std::vector<float> sampled(const safetensors::File& file, const safetensors::Entry& entry) {
  std::vector<float> values(static_cast<std::size_t>(entry.numel));
  file.read(entry, 0, values);
  std::vector<float> chosen;
  const std::size_t last = values.size() - 1;
  for (std::size_t i = 0; i < 4; ++i) chosen.push_back(values.at(last * i / 3));
  return chosen;
}

void check_weights(const std::filesystem::path& model, const json& truth) {
  const safetensors::File file(UniqueFd(open(model.c_str(), O_RDONLY | O_CLOEXEC)), "model");
  for (const safetensors::Entry& entry : file.entries()) {
    CAPTURE(entry.name);
    if (entry.name.ends_with("attn.c_attn.bias")) continue;  // see make_trainer.py
    const std::vector<float> found = sampled(file, entry);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i] ==
            Approx(truth.at(entry.name).at(i).get<double>()).margin(weight_tolerance).epsilon(0));
    }
  }
}

}  // namespace

TEST_CASE("train: whole commands end as those of Hugging Face's Trainer", "[e2e][golden]") {
  const json runs = test::read_json(test::golden_folder / "trainer.json");
  const auto index = static_cast<std::size_t>(GENERATE(range(0, 5)));
  const std::string ranks = GENERATE("1", "2");
  const json& truth = runs.at(index);
  const json& arguments = truth.at("arguments").at(ranks);
  const test::TempDir folder;
  std::vector<std::string> command{"--num_gpus", ranks, "train", "--output_dir",
                                   folder.path() / "out"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  test::Launch launch(command, {.env = {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}},
                                .directory = test::golden_folder.string()});
  const int status = launch.wait();
  CAPTURE(index, ranks, launch.err());
  REQUIRE(runs.size() == 5);
  REQUIRE(status == 0);
  const std::vector<json> rows = test::read_metrics(folder.path() / "out");
  const auto steps = rows_with("loss", rows);
  CHECK(steps.rbegin()->first == truth.at("global_step").get<std::int64_t>());
  for (const json& step : truth.at("steps")) check_step(steps.at(step.at("step")), step);
  const auto evaluations = rows_with("eval_loss", rows);
  for (const json& evaluation : truth.at("evaluations")) {
    CHECK(evaluations.at(evaluation.at("step")).at("eval_loss") ==
          Approx(evaluation.at("eval_loss").get<double>()).epsilon(loss_tolerance));
  }
  check_weights(folder.path() / "out/model.safetensors", truth.at("weights"));
}
