// Whole runs that offload: the results of a run that does not, and nothing left behind.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::ResumableRun;
using test::TrainRun;

namespace {

namespace fs = std::filesystem;

json cpu() {
  return {{"device", "cpu"}};
}

/// Through few and small buffers, so that all of them are waited for.
json nvme(const fs::path& directory) {
  return {{"device", "nvme"}, {"nvme_path", directory.string()}, {"buffer_count", 2}};
}

json early_on(const fs::path& directory) {
  json section = nvme(directory);
  section["super_offload"] = true;
  return section;
}

json shards_on(const fs::path& directory) {
  json section = nvme(directory);
  section["max_in_cpu"] = 0;
  return section;
}

std::vector<json> offloads(const fs::path& disk) {
  return {{{"offload_optimizer", cpu()}},
          {{"offload_optimizer", {{"device", "cpu"}, {"ratio", 0.4}, {"pin_memory", false}}}},
          {{"offload_optimizer", cpu()}, {"offload_param", cpu()}},
          {{"offload_optimizer", nvme(disk)}, {"sub_group_size", 1000}},
          {{"offload_optimizer", nvme(disk)}, {"offload_param", cpu()}},
          {{"offload_optimizer", nvme(disk)}, {"offload_param", shards_on(disk)}},
          {{"offload_optimizer", early_on(disk)}, {"offload_param", cpu()}},
          {{"offload_optimizer", early_on(disk)}, {"offload_param", shards_on(disk)}}};
}

std::string model_of(const fs::path& output) {
  return test::read_bytes(output / "model.safetensors");
}

}  // namespace

TEST_CASE("OffloadRun: results are those of a run without", "[e2e][offload]") {
  const auto [bf16, in_16_bits] =
      GENERATE(table<bool, bool>({{false, false}, {true, false}, {true, true}}));
  const int ranks = GENERATE(1, 2);
  const test::TempDir folder;
  const fs::path disk = folder.path() / "made" / "as in DeepSpeed";
  ResumableRun run{
      .ranks = ranks, .stage = 3, .bf16 = bf16, .in_16_bits = in_16_bits, .micro_batch = 2};
  const TrainRun reference = run.train(folder.path() / "plain", 4);
  REQUIRE(reference.status == 0);
  int number = 0;
  for (const json& zero : offloads(disk)) {
    run.zero = zero;
    const fs::path output = folder.path() / std::to_string(++number);
    const TrainRun offloaded = run.train(output, 4, {"--save_steps", "3"});
    CAPTURE(bf16, in_16_bits, ranks, zero.dump(), offloaded.err);
    REQUIRE(offloaded.status == 0);
    CHECK(results_of(offloaded) == results_of(reference));
    CHECK(model_of(output) == model_of(folder.path() / "plain"));
    const json& metrics = offloaded.metrics.back();
    const json& planned = metrics.at("planned_memory");
    CHECK(metrics.at("memory").at("device") == planned.at("device"));
    // The copy for a save is a little larger or smaller on another rank than on the first.
    CHECK(metrics.at("memory").at("nvme").get<double>() ==
          Catch::Approx(planned.at("nvme").get<double>()).epsilon(0.01));
  }
  CHECK(fs::is_empty(disk));
}

TEST_CASE("OffloadRun: early updates do not change the result", "[e2e][offload]") {
  const bool bf16 = GENERATE(false, true);
  const int ranks = GENERATE(1, 2);
  const double clipping = GENERATE(0.0, 100.0);  // none is clipped; with a limit that may happen
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  ResumableRun run{.ranks = ranks, .stage = 3, .bf16 = bf16, .clipping = clipping};
  const TrainRun reference = run.train(folder.path() / "plain", 6);
  const fs::path output = folder.path() / "early";
  const fs::path profile = folder.path() / "profile.json";
  run.more = {"--profile", profile.string()};
  run.zero = {{"offload_optimizer", early_on(disk)}, {"sub_group_size", 1000}};
  const TrainRun begun = run.train(output, 3);
  CAPTURE(bf16, ranks, clipping, begun.err);
  REQUIRE(begun.status == 0);
  const json sums = test::read_json(profile).at("metadata").at("ranks").at(0);
  CHECK(sums.at("early_update_seconds") > 0);
  CHECK_THAT(begun.out, ContainsSubstring("early updates "));
  run.zero["offload_param"] = shards_on(disk);
  const TrainRun ended = run.resume(output, 6);
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  CHECK(results_of(ended) == results_of(reference));
  CHECK(model_of(output) == model_of(folder.path() / "plain"));
  CHECK(fs::is_empty(disk));
}

TEST_CASE("OffloadRun: a step that is not finite ends a run even after early updates began",
          "[e2e][offload]") {
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  ResumableRun run{.ranks = 2, .stage = 3, .clipping = 0};
  run.zero = {{"offload_optimizer", early_on(disk)}};
  json config = run.config();
  config.erase("scheduler");
  config["optimizer"]["params"]["lr"] = 1e30;
  const fs::path output = folder.path() / "out";
  std::vector<std::string> arguments = run.arguments(9);
  arguments.insert(arguments.end(), {"--save_steps", "1"});
  const TrainRun ended = test::run_train(2, config, output, arguments);
  CAPTURE(ended.err);
  CHECK(ended.status == 1);
  CHECK_THAT(ended.err, ContainsSubstring("step 2: the loss is ") &&
                            ContainsSubstring("the step was not taken"));
  CHECK(fs::exists(output / "checkpoint-1/manifest.json"));
  CHECK_FALSE(fs::exists(output / "checkpoint-2"));
  CHECK(fs::is_empty(disk));
}

TEST_CASE("OffloadRun: a run resumes with another offload", "[e2e][offload]") {
  const bool bf16 = GENERATE(false, true);
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  ResumableRun run{.ranks = 2, .stage = 3, .bf16 = bf16};
  const TrainRun reference = run.train(folder.path() / "whole", 6);
  const std::vector<json> all = offloads(disk);
  const fs::path output = folder.path() / "cut";
  for (std::size_t part = 0; part < 3; ++part) {
    run.zero = all[(2 * part + 3) % all.size()];
    const int until = 2 * static_cast<int>(part + 1);
    const TrainRun cut = part == 0 ? run.train(output, until) : run.resume(output, until);
    CAPTURE(bf16, part, cut.err);
    REQUIRE(cut.status == 0);
    if (until == 6) CHECK(results_of(cut) == results_of(reference));
  }
  CHECK(model_of(output) == model_of(folder.path() / "whole"));
}

TEST_CASE("OffloadRun: a killed run leaves nothing", "[e2e][offload]") {
  const test::TempDir folder;
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  ResumableRun run{.ranks = 2, .stage = 3};
  run.zero = {{"offload_optimizer", nvme(disk)}, {"offload_param", shards_on(disk)}};
  test::Launch launch(run.endless(folder.path() / "out"),
                      {.env = {}, .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 3/"));
  launch.signal(SIGKILL);
  CHECK(launch.nothing_left());
  CHECK(fs::is_empty(disk));
}

TEST_CASE("OffloadRun: a raised number of buffers is reported if there are any", "[e2e][offload]") {
  const test::TempDir folder;
  const bool swaps = GENERATE(false, true);
  ResumableRun run{.ranks = 1, .stage = 3};
  json shards = shards_on(folder.path());
  shards["buffer_size"] = 100;
  if (!swaps) shards["max_in_cpu"] = 1'000'000;  // all of them
  run.zero = {{"offload_param", shards}};
  const TrainRun told = run.train(folder.path() / "out", 1);
  CHECK(told.status == 0);
  CHECK((told.err.find("buffer_size: 100 is raised to") != std::string::npos) == swaps);
}

TEST_CASE("OffloadRun: a disk that cannot be used is told before any rank starts",
          "[e2e][offload]") {
  const auto [section, dry_run] =
      GENERATE(table<std::string, bool>({{"offload_optimizer", false}, {"offload_param", true}}));
  const test::TempDir folder;
  ResumableRun run{.ranks = 2, .stage = 3};
  const fs::path file = folder.path() / "file";
  std::ofstream(file) << "text";
  const fs::path missing = file / "missing";
  run.zero = {{section, nvme(missing)}};
  std::vector<std::string> command = run.endless(folder.path() / "out");
  if (dry_run) command.insert(command.begin(), "--dry_run");
  test::Launch refused(command, {.env = {}, .directory = test::golden_folder.string()});
  CHECK(refused.wait() == 2);
  CHECK(refused.out().empty());
  CHECK_THAT(refused.err(),
             ContainsSubstring("zero_optimization." + section + ".nvme_path: " + missing.string() +
                               ": cannot be made: " + file.string() +
                               " is no directory; give one that every machine"));
  CHECK_FALSE(fs::exists(folder.path() / "out"));
}
