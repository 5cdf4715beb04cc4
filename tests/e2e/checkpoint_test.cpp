// What training saves, and what it does when it cannot.
#include "runtime/checkpoint/checkpoint.h"

#include <csignal>
#include <fstream>
#include <memory>

#include <sys/mount.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "tests/e2e/launch_process.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::ResumableRun;

namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> steps_in(const fs::path& output) {
  std::vector<std::int64_t> steps;
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(output)) {
    CHECK(checkpoint::verify(found.path).whole());
    steps.push_back(found.step);
  }
  return steps;
}

bool has_leftovers(const fs::path& output) {
  for (const auto& entry : fs::directory_iterator(output)) {
    if (entry.path().filename().string().find(".tmp") != std::string::npos) return true;
  }
  return false;
}

fs::path shard_of(const fs::path& checkpoint, int rank, const std::string& kind) {
  const std::string tag = test::read_bytes(checkpoint / "latest");
  return checkpoint / tag /
         fmt::format("zero_pp_rank_{}_mp_rank_00_{}_states.safetensors", rank, kind);
}

}  // namespace

TEST_CASE("Checkpoint: a run does not write into a checkpoint", "[e2e]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  REQUIRE(ResumableRun().train(output, 2).status == 0);
  const fs::path inside = output / "checkpoint-2" / "more" / "out";
  const test::Outcome refused = test::run_command(
      test::train_command(inside), {.env = {}, .directory = test::golden_folder.string()});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("checkpoint-2 is a checkpoint; choose another"));
  CHECK_FALSE(fs::exists(inside.parent_path()));
}

TEST_CASE("Checkpoint: inspecting a run creates no files", "[e2e]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "deep" / "out";
  std::vector<std::string> command = test::train_command(output);
  command.insert(command.begin(), "--dry_run");
  command.insert(command.end(), {"--run_name", "x"});
  const test::Outcome shown =
      test::run_command(command, {.env = {}, .directory = test::golden_folder.string()});
  CHECK(shown.status == 0);
  CHECK_THAT(shown.err, ContainsSubstring("--run_name"));
  CHECK_FALSE(fs::exists(output.parent_path()));
}

TEST_CASE("Checkpoint: a run saves when it is due and at the end", "[e2e][checkpoint]") {
  const bool bf16 = GENERATE(false, true);
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.ranks = 3, .stage = 2, .bf16 = bf16};
  const test::TrainRun result = run.train(output, 5, {"--save_steps", "2"});
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  CHECK(steps_in(output) == std::vector<std::int64_t>{5, 4, 2});
  CHECK_FALSE(has_leftovers(output));
  for (const int step : {2, 4, 5}) {
    const std::string saved = fmt::format("saved {}/checkpoint-{}\n", output.string(), step);
    CHECK_THAT(result.out, ContainsSubstring(saved));
  }
  // Training goes on meanwhile: the vote before step 3 lets it be committed, a later one tells.
  CHECK(result.out.find("step 3/5") < result.out.find("saved"));
  const fs::path last = output / "checkpoint-5";
  CHECK(test::read_bytes(last / "latest") == "global_step5");
  CHECK(test::read_json(last / "ds_config.json") == run.config());
  CHECK(fs::exists(shard_of(last, 2, "optim")));
  CHECK(fs::exists(shard_of(last, 2, "model")) == bf16);
  const nlohmann::json state = test::read_json(last / "trainer_state.json");
  CHECK(state.at("version") == 2);
  CHECK(state.at("global_step") == 5);
  CHECK(state.at("consumed_samples") == 60);
  CHECK(state.at("optimizer").at("step") == 5);
  CHECK(state.at("client_state") == nlohmann::json::object());
  const nlohmann::json& metrics = result.metrics.back();
  CHECK(result.metrics.front().at("memory").at("host") == 0);
  CHECK(metrics.at("memory").at("host").get<double>() ==
        Catch::Approx(metrics.at("planned_memory").at("host").get<double>()).epsilon(0.05));
}

TEST_CASE("Checkpoint: files do not depend on the stage", "[e2e][checkpoint]") {
  const test::TempDir folder;
  std::vector<std::string> first;
  for (const int stage : {0, 1, 2, 3}) {
    const fs::path output = folder.path() / fmt::format("{}", stage);
    REQUIRE(ResumableRun{.stage = stage, .bf16 = true}.train(output, 2).status == 0);
    std::vector<std::string> files;
    for (const int rank : {0, 1}) {
      for (const char* kind : {"optim", "model"}) {
        files.push_back(test::read_bytes(shard_of(output / "checkpoint-2", rank, kind)));
      }
    }
    if (first.empty()) first = files;
    CHECK((files == first));
  }
}

TEST_CASE("Checkpoint: the model as one file is in it when asked for", "[e2e][checkpoint]") {
  const int stage = GENERATE(0, 3);
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.stage = stage, .bf16 = true};
  nlohmann::json config = run.config();
  config["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] = true;
  std::vector<std::string> arguments = run.arguments(3);
  REQUIRE(test::run_train(2, config, output, arguments).status == 0);
  CHECK(steps_in(output) == std::vector<std::int64_t>{3});
  CHECK((test::read_bytes(output / "checkpoint-3/model.safetensors") ==
         test::read_bytes(output / "model.safetensors")));
  arguments.insert(arguments.end(), {"--max_steps", "4", "--resume_from_checkpoint", "latest"});
  CHECK(test::run_train(2, config, output, arguments).status == 0);
}

TEST_CASE("Checkpoint: no more are kept than requested", "[e2e][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.stage = 1};
  REQUIRE(run.train(output, 5, {"--save_steps", "1", "--save_total_limit", "2"}).status == 0);
  CHECK(steps_in(output) == std::vector<std::int64_t>{5, 4});
  REQUIRE(run.resume(output, 7, {"--save_steps", "1", "--save_total_limit", "1"}).status == 0);
  CHECK(steps_in(output) == std::vector<std::int64_t>{7});
}

TEST_CASE("Checkpoint: damage is reported and the previous checkpoint is used",
          "[e2e][checkpoint]") {
  struct Row {
    std::string file;
    std::string told;
  };
  const auto row = GENERATE(
      Row{"global_step4/zero_pp_rank_1_mp_rank_00_optim_states.safetensors", "damaged at byte"},
      Row{"global_step4/zero_pp_rank_0_mp_rank_00_model_states.safetensors", "damaged at byte"},
      Row{"ds_config.json", "damaged at byte"}, Row{"trainer_state.json", "damaged at byte"},
      Row{"manifest.json", "manifest.json"});
  CAPTURE(row.file);
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.stage = 3, .bf16 = true};
  const test::TrainRun whole = run.train(output, 6, {"--save_steps", "2"});
  REQUIRE(whole.status == 0);
  fs::remove_all(output / "checkpoint-6");
  const fs::path damaged = output / "checkpoint-4" / row.file;
  test::flip_byte(damaged, fs::file_size(damaged) * 2 / 3);

  const test::TrainRun explicitly = run.train(
      folder.path() / "other", 6, {"--resume_from_checkpoint", (output / "checkpoint-4").string()});
  CHECK(explicitly.status == 2);
  CHECK_THAT(explicitly.err, ContainsSubstring(row.file));

  const test::TrainRun rest = run.resume(output, 6);
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  CHECK_THAT(rest.err, ContainsSubstring("checkpoint-4 is damaged and not used: ") &&
                           ContainsSubstring(row.file) && ContainsSubstring(row.told) &&
                           ContainsSubstring("going on from " + output.string() +
                                             "/checkpoint-2, after step 2"));
  CHECK(test::results_of(rest) == test::results_of(whole));
}

TEST_CASE("Checkpoint: a checkpoint of another optimizer is not called damaged",
          "[e2e][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun adamw{.ranks = 1};
  REQUIRE(adamw.train(output, 2).status == 0);
  const ResumableRun lion{.ranks = 1, .optimizer = "Lion"};
  const test::TrainRun other = lion.resume(output, 4);
  REQUIRE(other.status == 0);
  CHECK_THAT(other.err, ContainsSubstring("optimizer Lion (was AdamW)"));

  const test::TrainRun refused = adamw.resume(output, 6);
  CHECK(refused.status == 2);
  CHECK_THAT(
      refused.err,
      ContainsSubstring("checkpoint-4: this run cannot go on from there:\n  optimizer is Lion "
                        "in the checkpoint, which keeps no exp_avg_sq, and AdamW now: give "
                        "the checkpoint's") &&
          !ContainsSubstring("damaged") && !ContainsSubstring("rank 0"));
  CHECK(steps_in(output) == std::vector<std::int64_t>{4, 2});
  CHECK(lion.resume(output, 6).status == 0);
}

TEST_CASE("Checkpoint: foreign files in the newest one are reported and it is kept",
          "[e2e][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.stage = 1};
  REQUIRE(run.train(output, 4, {"--save_steps", "2"}).status == 0);
  std::ofstream(output / "checkpoint-4" / "pytorch_model.bin") << "foreign";
  const test::TrainRun rest = run.resume(output, 6, {"--save_total_limit", "2"});
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  CHECK_THAT(rest.err,
             ContainsSubstring("going on from " + output.string() + "/checkpoint-4, after step 4"));
  const std::string told = "checkpoint-4 is whole, but holds foreign files: pytorch_model.bin;";
  REQUIRE_THAT(rest.err, ContainsSubstring(told));
  CHECK(rest.err.find(told) == rest.err.rfind(told));
  CHECK(fs::exists(output / "checkpoint-4/pytorch_model.bin"));
  CHECK(fs::exists(output / "checkpoint-6"));
  CHECK_FALSE(fs::exists(output / "checkpoint-2"));
}

TEST_CASE("Checkpoint: if all are damaged the run does not restart from the beginning",
          "[e2e][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const ResumableRun run{.stage = 2};
  REQUIRE(run.train(output, 2, {"--save_steps", "1"}).status == 0);
  for (const int step : {1, 2}) {
    const fs::path checkpoint = output / fmt::format("checkpoint-{}", step);
    fs::resize_file(shard_of(checkpoint, 0, "optim"), 1000);
  }
  const test::TrainRun rest = run.resume(output, 4);
  CHECK(rest.status == 2);
  CHECK_THAT(rest.err, ContainsSubstring("there is no whole checkpoint"));
}

TEST_CASE("Checkpoint: a state that is not finite is never saved", "[e2e][checkpoint]") {
  const test::TempDir folder;
  const fs::path model = folder.path() / "model";
  fs::copy(test::golden_folder / "model", model);
  // A position that no sample reaches: its value shows in no loss. Decay makes it infinite.
  const std::string bytes = test::read_bytes(model / "model.safetensors");
  const auto header =
      nlohmann::json::parse(bytes.substr(8, *reinterpret_cast<const std::uint64_t*>(bytes.data())));
  const auto& entry =
      header.contains("wpe.weight") ? header.at("wpe.weight") : header.at("transformer.wpe.weight");
  const std::size_t data = 8 + *reinterpret_cast<const std::uint64_t*>(bytes.data());
  const std::size_t end = data + entry.at("data_offsets").at(1).get<std::size_t>();
  {
    std::fstream file(model / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(end - sizeof(float)));
    const float large = 3e38F;
    file.write(reinterpret_cast<const char*>(&large), sizeof large);
  }
  const fs::path output = folder.path() / "out";
  const test::TrainRun run = test::run_train(
      2, {}, output,
      {"--model_name_or_path", model.string(), "--train_file", "tokens.bin", "--block_size", "16",
       "--per_device_train_batch_size", "2", "--save_steps", "2", "--max_steps", "4",
       "--learning_rate", "1e-4", "--weight_decay", "30000"});
  CAPTURE(run.err);
  CHECK(run.status == 1);
  CHECK(run.metrics.size() == 4);
  CHECK_THAT(run.err,
             ContainsSubstring("checkpoint-2 is not saved: fp32.wpe.weight holds a value that is "
                               "not finite") &&
                 ContainsSubstring("the model is not saved: wpe.weight holds a value that is not "
                                   "finite"));
  CHECK_FALSE(fs::exists(output / "model.safetensors"));
  CHECK(steps_in(output).empty());
  CHECK_FALSE(has_leftovers(output));
}

TEST_CASE("Checkpoint: a full disk is reported and training continues", "[e2e][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "disk";
  fs::create_directories(output);
  if (::mount("tmpfs", output.c_str(), "tmpfs", 0, "size=3m") != 0) {
    test::skip("no tmpfs can be mounted here");
  }
  const std::unique_ptr<const fs::path, void (*)(const fs::path*)> mounted(
      &output, [](const fs::path* path) { ::umount2(path->c_str(), MNT_DETACH); });
  // Room for two checkpoints of 0.8 MB each, and no third one to take the place of the first.
  std::ofstream(output / "ballast") << std::string(1 << 20, 'x');
  std::vector<std::string> command{
      "--num_gpus",      "2", "train", "--output_dir", output.string(), "--overwrite_output_dir",
      "--logging_steps", "1"};
  const ResumableRun run{.stage = 2};
  for (const std::string& word : run.arguments(1'000'000)) command.push_back(word);
  command.insert(command.end(), {"--save_steps", "2", "--save_total_limit", "2"});
  test::Launch launch(command, {.env = {}, .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("saved ", 2));
  // The third does not fit, however often it is tried; then there is room again.
  REQUIRE(launch.wait_for_error(" free"));
  CHECK(steps_in(output) == std::vector<std::int64_t>{4, 2});
  fs::remove(output / "ballast");
  REQUIRE(launch.wait_for_output("saved ", 3));
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 75);
  steps_in(output);
  CHECK_FALSE(has_leftovers(output));
}
