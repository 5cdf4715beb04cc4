// Whole runs with --tiled_linear_in_splits: what fits, what is equal, what goes on.

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

constexpr const char* splits_flag = "--tiled_linear_in_splits";

std::string model_of(const std::filesystem::path& output) {
  return read_bytes(output / "model.safetensors");
}

}  // namespace

TEST_CASE("TiledRun: every stage has the same results", "[e2e][tiles]") {
  const bool bf16 = GENERATE(false, true);
  const TempDir folder;
  ResumableRun run{.ranks = 2, .bf16 = bf16, .micro_batch = 6, .more = {splits_flag, "3"}};
  const TrainRun reference = run.train(folder.path() / "0", 4);
  REQUIRE(reference.status == 0);
  for (const int stage : {1, 2, 3}) {
    run.stage = stage;
    const std::filesystem::path output = folder.path() / std::to_string(stage);
    const TrainRun other = run.train(output, 4);
    CAPTURE(stage, other.err);
    REQUIRE(other.status == 0);
    CHECK(results_of(other) == results_of(reference));
    CHECK(model_of(output) == model_of(folder.path() / "0"));
  }
}

TEST_CASE("TiledRun: a run resumes with other tiles and other ranks", "[e2e][tiles]") {
  const TempDir folder;
  const ResumableRun tiled{.ranks = 3, .stage = 3, .more = {splits_flag, "5"}};
  const TrainRun whole = tiled.train(folder.path() / "whole", 6);
  REQUIRE(whole.status == 0);
  const std::filesystem::path output = folder.path() / "cut";
  REQUIRE(tiled.train(output, 2).status == 0);
  const TrainRun same = tiled.resume(output, 4);
  REQUIRE(same.status == 0);
  for (std::size_t i = 0; i < 4; ++i) CHECK(results_of(same)[i] == results_of(whole)[i]);
  const ResumableRun changed{.ranks = 2, .stage = 2, .more = {splits_flag, GENERATE("1", "2")}};
  const TrainRun rest = changed.resume(output, 6);
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(rest.metrics[i].at("loss").get<double>() ==
          Catch::Approx(whole.metrics[i].at("loss").get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("TiledRun: blocks that are too large to gather train in tiles", "[e2e][tiles]") {
  const json cpu{{"device", "cpu"}};
  const json config{{"train_batch_size", 1},
                    {"zero_optimization",
                     {{"stage", 3},
                      {"overlap_comm", false},
                      {"offload_optimizer", cpu},
                      {"offload_param", cpu}}}};
  const TempDir folder;
  const auto train = [&](const char* splits) {
    return run_train({"--num_gpus", "1", "--device_memory", "3MiB"}, config, folder.path() / splits,
                     {"--config_name", "gpt2", "--config_overrides",
                      "n_layer=2,n_embd=256,n_head=4,vocab_size=160,n_positions=32", "--train_file",
                      "tokens.bin", "--block_size", "8", "--max_steps", "2", splits_flag, splits});
  };
  const TrainRun whole = train("1");
  CHECK(whole.status == 2);
  CHECK_THAT(whole.err, ContainsSubstring("--device_memory allows 3.00 MiB") &&
                            ContainsSubstring(splits_flag));
  const TrainRun tiled = train("8");
  CAPTURE(tiled.err);
  REQUIRE(tiled.status == 0);
  const json& metrics = tiled.metrics.back();
  CHECK(metrics.at("memory").at("device") == metrics.at("planned_memory").at("device"));
}
