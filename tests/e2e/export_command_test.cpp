// dstrain checkpoint export, as a person types it.
#include <fstream>
#include <tuple>

#include "runtime/model/hf_import.h"
#include "runtime/model/random_source.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/model_checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_gpt2.h"

using namespace dstrain;
using test::Outcome;
using test::run_command;
namespace fs = std::filesystem;

namespace {

/// A checkpoint of toy weights drawn from the step.
fs::path save(const fs::path& output, std::uint64_t step) {
  const model::Model toy = test::toy_gpt2();
  const auto specs = toy.parameters();
  return test::write_model_checkpoint(output, {static_cast<std::int64_t>(step), 2, toy.config_json},
                                      specs, model::RandomSource(step, specs));
}

bool holds_weights_of(const fs::path& directory, std::uint64_t step) {
  const model::Model toy = test::toy_gpt2();
  const auto specs = toy.parameters();
  const model::HfWeights found(directory.string(), specs, toy.hf_names);
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
  Outcome outcome = run_command({"checkpoint", "export", run_directory, output});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.status == 0);
  CHECK(holds_weights_of(output, 2));
  CHECK(outcome.out ==
        fmt::format("{}: {} parameters of {} in fp32, 1 file: a Hugging Face directory with "
                    "safetensors, not a pickle\n",
                    output, test::toy_gpt2().parameter_count(), newest.string()));

  std::ofstream(newest / "config.json", std::ios::app) << ' ';
  outcome = run_command({"zero_to_fp32", run_directory, output, "--max_shard_size", "40KB"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err, Catch::Matchers::ContainsSubstring("warning: " + newest.string() +
                                                             " is passed over: "));
  CHECK(holds_weights_of(output, 1));
  CHECK(fs::exists(fs::path(output) / "model.safetensors.index.json"));
  CHECK_FALSE(fs::exists(fs::path(output) / "model.safetensors"));

  outcome = run_command({"checkpoint", "export", newest.string(), output});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Catch::Matchers::ContainsSubstring("config.json"));
  CHECK(holds_weights_of(output, 1));
}

TEST_CASE("export: a target inside a checkpoint is moved beside it", "[e2e]") {
  const test::TempDir folder;
  const fs::path runs = fs::canonical(folder.path());
  save(runs / "o", 3);
  const fs::path saved = save(runs / "o", 4);
  fs::create_directory_symlink(saved, runs / "link");
  struct Row {
    std::string directory;
    std::vector<std::string> command;
    std::string beside;
  };
  const auto row = GENERATE(
      Row{"o/checkpoint-4", {"zero_to_fp32", ".", "pytorch_model.bin"}, "checkpoint-4-fp32"},
      Row{"o/checkpoint-4", {"zero_to_fp32", ".", "."}, "checkpoint-4-fp32"},
      Row{"o/checkpoint-4/global_step4",
          {"checkpoint", "export", "..", "hf/"},
          "checkpoint-4-fp32"},
      Row{".", {"checkpoint", "export", "o", "link/hf", "--dtype=bf16"}, "checkpoint-4-bf16"},
      Row{".", {"zero_to_fp32", "o", "none/../o/checkpoint-3/hf"}, "checkpoint-4-fp32"});
  const fs::path beside = runs / "o" / row.beside;
  CAPTURE(row.directory, row.command);
  const Outcome outcome = run_command(row.command, {.env = {}, .directory = runs / row.directory});
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Catch::Matchers::StartsWith(beside.string() + ": ") &&
                              Catch::Matchers::EndsWith("with safetensors, not a pickle\n"));
  CHECK_THAT(outcome.err, Catch::Matchers::ContainsSubstring("which must not change"));
  CHECK(fs::exists(beside / "model.safetensors"));
  CHECK(holds_weights_of(beside, 4) == row.beside.ends_with("fp32"));
  const Outcome verified = run_command({"checkpoint", "verify", (runs / "o").string(), "--json"});
  CHECK(verified.status == 0);
  CHECK(verified.out.find("-fp32") == std::string::npos);
}

TEST_CASE("export: a tag chooses the checkpoint as in DeepSpeed", "[e2e]") {
  const test::TempDir folder;
  const std::string runs = folder.path() / "o";
  const fs::path old = save(runs, 3);
  save(runs, 4);
  const std::string output = folder.path() / "hf";
  Outcome outcome = run_command({"zero_to_fp32", runs, output, "-t", "global_step3",
                                 "--safe_serialization", "--exclude_frozen_parameters"});
  CAPTURE(outcome.err);
  CHECK(outcome.status == 0);
  CHECK(holds_weights_of(output, 3));
  CHECK(run_command({"zero_to_fp32", old.string(), output, "--tag", "global_step3"}).status == 0);
  for (const auto& [source, tag, message] :
       {std::tuple(runs, "global_step5", "contains no checkpoint-5"),
        std::tuple(old.string(), "global_step4", "is a checkpoint of another step"),
        std::tuple(runs, "step4", "expected global_stepN")}) {
    outcome = run_command({"zero_to_fp32", source, output, "--tag", tag});
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::Matchers::ContainsSubstring(message));
  }
}

TEST_CASE("export: what cannot be done is told", "[e2e]") {
  const test::TempDir folder;
  const fs::path saved = save(folder.path() / "run", 3);
  const std::string one = saved.string();
  const std::string output = folder.path() / "hf";
  const fs::path file = folder.path() / "a_file";
  std::ofstream(file) << "text";
  struct Row {
    std::vector<std::string> arguments;
    std::string message;
  };
  const fs::path finished = folder.path() / "finished";
  fs::create_directories(finished);
  std::ofstream(finished / "model.safetensors") << "weights";
  const std::vector<Row> rows{
      {{finished.string(), output},
       finished.string() + ": is already a Hugging Face model directory"},
      {{one}, "OUT is required"},
      {{one, output, "--dtype", "fp8"}, "--dtype"},
      {{one, output, "--max_shard_size", "5 lemons"}, "\"5 lemons\" is not a size"},
      {{one, output, "--max_shard_size", "0"}, "--max_shard_size: must be more than 0"},
      {{one, ""}, "OUT"},
      {{one, (folder.path() / "checkpoint-5").string()}, "has the name of a checkpoint"},
      {{one, output, "--debug"}, "--debug"},
      {{folder.path().string(), output}, "contains no checkpoint with complete data"},
      {{output, output}, output + ": no such directory"},
      {{"nowhere", output}, "nowhere: no such directory\n"},
      {{one, file.string()}, file.string() + ": is a file; give a directory for the model"},
      {{one, (file / "hf").string()}, file.string() + ": is a file"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> command{"checkpoint", "export"};
    command.insert(command.end(), row.arguments.begin(), row.arguments.end());
    const Outcome outcome = run_command(command);
    CAPTURE(outcome.err);
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Catch::Matchers::ContainsSubstring(row.message));
    CHECK_FALSE(fs::exists(output));
  }
}
