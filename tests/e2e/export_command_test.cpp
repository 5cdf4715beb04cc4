// dstrain checkpoint export, as a person types it.
#include <fstream>

#include <catch2/catch.hpp>

#include "runtime/model/hf_import.h"
#include "runtime/model/random_source.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/model_checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_gpt2.h"

using namespace dstrain;
namespace fs = std::filesystem;

namespace {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

Outcome run(std::vector<std::string> arguments) {
  test::Launch launch(std::move(arguments));
  Outcome outcome{launch.wait(), {}, {}};
  outcome.out = launch.out();
  outcome.err = launch.err();
  return outcome;
}

/// A checkpoint of toy weights drawn from the step.
fs::path save(const fs::path& output, std::uint64_t step) {
  const model::Model toy = test::toy_gpt2();
  const auto specs = toy.parameters();
  return test::write_model_checkpoint(output, {static_cast<std::int64_t>(step), 2, toy.config_json},
                                      specs, model::RandomSource(step, specs));
}

bool holds_weights_of(const fs::path& directory, std::uint64_t step) {
  const auto specs = test::toy_gpt2().parameters();
  const model::HfWeights found(directory.string(), specs);
  const model::RandomSource expected(step, specs);
  std::vector<float> left(100);
  std::vector<float> right(100);
  found.read(specs.front(), 0, left);
  expected.read(specs.front(), 0, right);
  return left == right;
}

}  // namespace

TEST_CASE("export: the newest checkpoint that verifies is taken", "[e2e]") {
  const test::TempDir folder;
  const std::string run_directory = folder.path() / "run";
  const std::string output = folder.path() / "hf";
  save(run_directory, 1);
  const fs::path newest = save(run_directory, 2);
  Outcome outcome = run({"checkpoint", "export", run_directory, output});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.status == 0);
  CHECK(holds_weights_of(output, 2));
  CHECK(outcome.out == fmt::format("{}: {} parameters of {} in fp32, 1 file\n", output,
                                   test::toy_gpt2().parameter_count(), newest.string()));

  std::ofstream(newest / "config.json", std::ios::app) << ' ';
  outcome = run({"zero_to_fp32", run_directory, output, "--max_shard_size", "40KB"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err, Catch::Contains("warning: " + newest.string() + " is passed over: "));
  CHECK(holds_weights_of(output, 1));
  CHECK(fs::exists(fs::path(output) / "model.safetensors.index.json"));
  CHECK_FALSE(fs::exists(fs::path(output) / "model.safetensors"));

  outcome = run({"checkpoint", "export", newest.string(), output});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Catch::Contains("config.json"));
  CHECK(holds_weights_of(output, 1));
}

TEST_CASE("export: what cannot be done is told", "[e2e]") {
  const test::TempDir folder;
  const fs::path saved = save(folder.path() / "run", 3);
  const std::string one = saved.string();
  const std::string output = folder.path() / "hf";
  struct Row {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Row> rows{
      {{one}, "OUT is required"},
      {{one, output, "--dtype", "fp8"}, "--dtype"},
      {{one, output, "--max_shard_size", "5 lemons"}, "\"5 lemons\" is not a size"},
      {{one, output, "--max_shard_size", "0"}, "a file must hold something"},
      {{one, (saved / "hf").string()}, "lies in the checkpoint"},
      {{one, one}, "lies in the checkpoint"},
      {{folder.path().string(), output}, "holds no checkpoint that verifies"},
      {{output, output}, output},
  };
  for (const Row& row : rows) {
    std::vector<std::string> command{"checkpoint", "export"};
    command.insert(command.end(), row.arguments.begin(), row.arguments.end());
    const Outcome outcome = run(command);
    CAPTURE(outcome.err);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::Contains(row.message));
    CHECK_FALSE(fs::exists(output));
  }
}
