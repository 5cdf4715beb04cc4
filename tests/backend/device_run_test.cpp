// Runs on a device whose memory the host cannot reach, which its plug-in brings.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using test::ResumableRun;
using Words = std::vector<std::string>;

namespace {

namespace fs = std::filesystem;

const fs::path backends = DSTRAIN_TEST_BACKENDS;

launcher::EnvVar plug_ins(const std::string& folder) {
  return {"DSTRAIN_PLUGIN_PATH", (backends / folder).string()};
}

test::TrainRun train_on(const std::string& device,
                        const ResumableRun& run,
                        const fs::path& output,
                        int steps,
                        const Words& more = {}) {
  Words arguments = run.arguments(steps);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_train({"--device", device, "--num_gpus", std::to_string(run.ranks)},
                         run.config(), output, arguments, {plug_ins("deferred")});
}

void check_like_cpu(const ResumableRun& run) {
  const test::TempDir folder;
  const test::TrainRun cpu = train_on("cpu", run, folder.path() / "cpu", 4);
  const test::TrainRun device = train_on("cuda", run, folder.path() / "device", 4);
  CAPTURE(cpu.err, device.err);
  REQUIRE(cpu.status == 0);
  REQUIRE(device.status == 0);
  CHECK_THAT(device.err, ContainsSubstring("the ranks compute on cuda"));
  REQUIRE(cpu.metrics.size() == 4);
  CHECK(test::results_of(device) == test::results_of(cpu));
  CHECK(test::read_bytes(folder.path() / "device/model.safetensors") ==
        test::read_bytes(folder.path() / "cpu/model.safetensors"));
  const nlohmann::json& last = device.metrics.back();
  CHECK(last.at("device_memory") == last.at("planned_device_memory"));
  CHECK(last.at("memory").at("pinned") == last.at("planned_memory").at("pinned"));
}

}  // namespace

TEST_CASE("Device: training has the bits of the CPU", "[e2e][backend]") {
  const int ranks = GENERATE(1, 2);
  const int stage = GENERATE(0, 2, 3);
  CAPTURE(ranks, stage);
  check_like_cpu({.ranks = ranks, .stage = stage, .micro_batch = 3});
}

TEST_CASE("Device: offload and overlap and checkpointed activations change no bit",
          "[e2e][backend]") {
  const test::TempDir folder;
  const nlohmann::json host{{"device", "cpu"}};
  const nlohmann::json disk{{"device", "nvme"}, {"nvme_path", folder.path().string()}};
  const std::vector<nlohmann::json> cases{
      {{"overlap_comm", true}, {"offload_optimizer", host}},
      {{"overlap_comm", true}, {"offload_optimizer", host}, {"offload_param", host}},
      {{"offload_optimizer", disk}, {"offload_param", disk}}};
  const nlohmann::json& zero = cases.at(GENERATE(0U, 1U, 2U));
  CAPTURE(zero.dump());
  check_like_cpu(
      {.ranks = 2, .stage = 3, .bf16 = true, .checkpointed_activations = true, .zero = zero});
}

TEST_CASE("Device: overflowing steps are skipped as on the CPU", "[e2e][backend]") {
  const test::TempDir folder;
  const nlohmann::json disk{{"device", "nvme"}, {"nvme_path", folder.path().string()}};
  const nlohmann::json fp16{{"enabled", true}, {"initial_scale_power", 24}, {"hysteresis", 1}};
  const bool offloads = GENERATE(false, true);
  check_like_cpu(
      {.ranks = 2,
       .stage = offloads ? 3 : 2,
       .fp16 = fp16,
       .micro_batch = 3,
       .zero = offloads ? nlohmann::json{{"offload_optimizer", disk}} : nlohmann::json::object()});
}

TEST_CASE("Device: a run resumes from a CPU checkpoint and evaluates and generates",
          "[e2e][backend]") {
  const test::TempDir folder;
  const fs::path whole = folder.path() / "whole";
  const fs::path cut = folder.path() / "cut";
  const Words evaluation{"--validation_file", "tokens.bin", "--eval_strategy", "steps",
                         "--eval_steps",      "2"};
  Words saving = evaluation;
  saving.insert(saving.end(), {"--save_steps", "2"});
  Words going_on = saving;
  going_on.insert(going_on.end(), {"--resume_from_checkpoint", "latest"});
  const ResumableRun run{.stage = 3};
  const test::TrainRun expected = train_on("cpu", run, whole, 6, evaluation);
  REQUIRE(expected.status == 0);
  REQUIRE(train_on("cpu", run, cut, 2, saving).status == 0);
  REQUIRE(train_on("cuda", run, cut, 4, going_on).status == 0);
  const test::TrainRun last = train_on("cuda", run, cut, 6, going_on);
  CAPTURE(last.err);
  REQUIRE(last.status == 0);
  CHECK(test::results_of(last) == test::results_of(expected));
  CHECK(test::read_bytes(cut / "model.safetensors") ==
        test::read_bytes(whole / "model.safetensors"));
  const auto continued = [&](const std::string& device) {
    const test::Outcome outcome =
        test::run_command({"--device", device, "generate", "--model_name_or_path", cut.string(),
                           "--prompt", "ABBA", "--tokenizer", "byte", "--max_new_tokens", "5"},
                          {.env = {plug_ins("deferred")}, .directory = {}});
    CAPTURE(outcome.err);
    CHECK(outcome.status == 0);
    return outcome.out;
  };
  CHECK(continued("cuda") == continued("cpu"));
}

TEST_CASE("Device: auto is a GPU where there are some and their plug-in", "[e2e][backend]") {
  const test::TempDir folder;
  std::ofstream(folder.path() / "nvidia0") << "";
  std::ofstream(folder.path() / "nvidia1") << "";
  const Launch::Options options{
      .env = {{"DSTRAIN_GPU_DIRECTORY", folder.path().string()}, plug_ins("deferred")},
      .directory = test::golden_folder.string()};
  const test::Outcome run = test::run_command(test::train_command(folder.path() / "out"), options);
  CAPTURE(run.err);
  CHECK(run.status == 0);
  CHECK_THAT(run.err, ContainsSubstring("2 ranks on localhost") &&
                          ContainsSubstring("the ranks compute on cuda"));
}

TEST_CASE("Device: a run uses the memory that was planned", "[e2e][backend]") {
  const test::TempDir folder;
  const Words model{"--config_name",
                    "gpt2",
                    "--config_overrides",
                    "n_layer=2,n_embd=48,n_head=4,vocab_size=256,n_positions=32",
                    "--block_size",
                    "32",
                    "--per_device_train_batch_size",
                    "2"};
  Words plan{"--device",        "cuda", "plan",          "--json", "--num_gpus", "2",
             "--device_memory", "1GiB", "--host_memory", "1GiB"};
  plan.insert(plan.end(), model.begin(), model.end());
  const test::Outcome planned = test::run_command(plan);
  CAPTURE(planned.err);
  REQUIRE(planned.status == 0);
  int number = 0;
  for (const nlohmann::json& row : nlohmann::json::parse(planned.out)) {
    if (row.at("gradient_checkpointing") == true) continue;
    CAPTURE(row.dump());
    Words arguments = model;
    ++number;
    arguments.insert(
        arguments.end(),
        {"--train_file", (test::golden_folder / "tokens.bin").string(), "--max_steps", "1"});
    const test::TrainRun run =
        test::run_train({"--device", "cuda", "--num_gpus", "2"}, row.at("ds_config"),
                        folder.path() / std::to_string(number), arguments, {plug_ins("deferred")});
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    CHECK(run.metrics.back().at("memory").at("device") == row.at("total").at("device"));
  }
}

TEST_CASE("Device: an unusable device is refused before anything starts", "[e2e][backend]") {
  const auto [plug_in, reason] = GENERATE(
      table<std::string, std::string>({{"broken", "libdstrain_cuda.so cannot be loaded"},
                                       {"other_version", "libdstrain_cuda.so is of dstrain 0.0.1"},
                                       {"failing", "device 0: no driver is loaded"}}));
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  Words command = test::train_command(output);
  command.insert(command.begin(), {"--device", "cuda"});
  const Launch::Options options{.env = {plug_ins(plug_in)},
                                .directory = test::golden_folder.string()};
  const test::Outcome refused = test::run_command(command, options);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err,
             ContainsSubstring("--device cuda: " + reason) && !ContainsSubstring("rank 0"));
  CHECK_FALSE(fs::exists(output));
  // A rank that no launcher has looked after finds it itself.
  command.erase(command.begin(), command.begin() + 2);
  command.insert(command.begin(), fs::path(DSTRAIN_PROGRAM).parent_path() / "dstraind");
  command.insert(command.begin(), "-q");
  Launch::Options alone = options;
  alone.env.push_back({"DSTRAIN_DEVICE", "cuda"});
  const test::Outcome rank = test::run_command(command, alone);
  CHECK(rank.status == 2);
  CHECK_THAT(rank.err, ContainsSubstring("--device cuda: " + reason));
}

TEST_CASE("Device: the launcher checks the device that the ranks use", "[e2e][backend]") {
  const test::TempDir folder;
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2"})
    std::ofstream(folder.path() / name) << "";
  Words command = test::train_command(folder.path() / "out");
  command.insert(command.begin(), {"--device", "cuda", "--include", "localhost:2"});
  const test::Outcome refused = test::run_command(
      command, {.env = {{"DSTRAIN_GPU_DIRECTORY", folder.path().string()}, plug_ins("failing")},
                .directory = test::golden_folder.string()});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("--device cuda: device 2: no driver is loaded"));
}

TEST_CASE("Device: bench measures CPUs alone", "[e2e][backend]") {
  const test::Outcome refused = test::run_command({"--device", "cuda", "bench", "gemm"},
                                                  {.env = {plug_ins("deferred")}, .directory = {}});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("bench measures CPUs"));
}
