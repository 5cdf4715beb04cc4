// Training on GPUs that NCCL connects: what stands in for both.
#include <csignal>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/rank/worker_env.h"
#include "tests/e2e/device_trace.h"
#include "tests/e2e/resumable_run.h"
#include "tests/e2e/trace_spans.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::golden_folder;
using test::worst_relative;
using Variables = std::vector<launcher::EnvVar>;

namespace {

/// Three GPUs, whose device files are in a folder of this test.
class Gpus {
 public:
  Gpus() {
    std::filesystem::create_directory(folder_.path() / "dev");
    for (const char* file : {"nvidia0", "nvidia1", "nvidia2"}) {
      std::ofstream(folder_.path() / "dev" / file) << "";
    }
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return folder_.path() / name;
  }
  [[nodiscard]] Variables environment(const Variables& more = {}) const {
    Variables all{{"DSTRAIN_GPU_DIRECTORY", file("dev").string()},
                  {"DSTRAIN_STAND_IN_GPUS", "3"},
                  {env::plug_in_path, DSTRAIN_STAND_IN}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::vector<std::string> options(int ranks) {
    return {"--device", "cuda", "--num_gpus", std::to_string(ranks)};
  }

 private:
  test::TempDir folder_;
};

struct Place {
  const char* golden;
  int ranks;
  int stage;
  std::size_t steps;  ///< the first of the golden run's: blocks of fibers take their time
};

/// Losses and norms of a run, as they are written, after it was held against PyTorch's.
std::vector<std::string> check_run(const Gpus& gpus, const Place& place) {
  CAPTURE(place.golden, place.ranks, place.stage);
  const json golden = test::read_json(golden_folder / (std::string(place.golden) + ".json"));
  json config = golden.at("ds_config");
  config["zero_optimization"] = {{"stage", place.stage}, {"overlap_comm", place.stage % 2 == 1}};
  if (place.stage == 3) config["zero_optimization"]["stage3_param_persistence_threshold"] = 300;
  std::vector<std::string> arguments = golden.at("arguments");
  REQUIRE(arguments.at(arguments.size() - 2) == "--max_steps");
  arguments.back() = std::to_string(place.steps);
  const test::TrainRun run = test::run_train(Gpus::options(place.ranks), config, gpus.file("out"),
                                             arguments, gpus.environment());
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK_THAT(run.err, ContainsSubstring("collectives go through NCCL"));
  json steps = golden.at("steps");
  steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(place.steps), steps.end());
  REQUIRE(run.metrics.size() == steps.size());
  CHECK(worst_relative(run.metrics, steps, "loss") < 1e-5);
  CHECK(worst_relative(run.metrics, steps, "grad_norm") < 1e-4);
  const json& last = run.metrics.back();
  CHECK(last.at("device_memory") == last.at("planned_device_memory"));
  const int watts = place.ranks * (place.ranks + 1) / 2 * 100;  // 100 W of GPU 0, 200 W of GPU 1
  CHECK(last.at("gpus").at("watts").get<double>() == Catch::Approx(watts).epsilon(0.01));
  CHECK(last.at("gpus").at("celsius") == 39 + place.ranks);
  return test::results_of(run);
}

}  // namespace

TEST_CASE("NCCL runs: every stage follows PyTorch and all have the same bits", "[nccl][e2e]") {
  const int ranks = GENERATE(2, 3);
  const Gpus gpus;
  const auto run = [&](int stage) {
    return check_run(gpus, {"clipping", ranks, stage, ranks == 2 ? 3U : 2U});
  };
  const auto expected = run(0);
  for (const int stage : {1, 2, 3}) CHECK(run(stage) == expected);
}

TEST_CASE("NCCL runs: with accumulation two and two stages have the same bits", "[nccl][e2e]") {
  const Gpus gpus;
  const auto run = [&](int stage) {
    return check_run(gpus, {"accumulation", 2, stage, 2});
  };
  CHECK(run(0) == run(1));
  CHECK(run(2) == run(3));
}

TEST_CASE("NCCL runs: collectives have the times of their stream", "[nccl][e2e][profile]") {
  constexpr int steps = 2;
  const Gpus gpus;
  const std::string profile = gpus.file("profile.json").string();
  const test::ResumableRun run{
      .ranks = 2, .stage = 3, .zero = {{"overlap_comm", true}}, .more = {"--profile", profile}};
  const test::TrainRun made = test::run_train(Gpus::options(2), run.config(), gpus.file("out"),
                                              run.arguments(steps), gpus.environment());
  CAPTURE(made.err);
  REQUIRE(made.status == 0);
  const json trace = test::read_json(profile);
  test::check_device_trace(trace, {.ranks = 2, .steps = steps});
  for (int rank = 0; rank < 2; ++rank) {
    const test::TraceSpans communication = test::spans_of(trace, rank, "communication");
    CHECK(test::count(communication, "all_gather") > 0);
    CHECK(test::count(communication, "reduce_scatter") > 0);
    // What the stream that computes waits for, not the host.
    CHECK(test::count(test::spans_of(trace, rank, "compute"), "wait") > 0);
  }
}

TEST_CASE("NCCL runs: a killed rank ends the run and nothing is left", "[nccl][e2e]") {
  const Gpus gpus;
  test::ResumableRun run{.ranks = 2, .stage = 3, .zero = {{"overlap_comm", true}}};
  std::vector<std::string> command = run.endless(gpus.file("out"));
  command.insert(command.begin(), {"--device", "cuda"});
  test::Launch launch(command,
                      {.env = gpus.environment(), .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 3/"));
  for (const pid_t pid : launch.processes()) {
    const std::string variables = test::read_bytes(fmt::format("/proc/{}/environ", pid));
    const std::string name = test::read_bytes(fmt::format("/proc/{}/comm", pid));
    if (name == "dstraind\n" && variables.find(std::string("\0RANK=1", 7)) != variables.npos) {
      ::kill(pid, SIGKILL);
    }
  }
  CHECK(launch.wait() != 0);
  CHECK_THAT(launch.err(), ContainsSubstring("rank 1") && ContainsSubstring("SIGKILL"));
  CHECK(launch.nothing_left());
}

TEST_CASE("NCCL runs: a call that fails ends the run and is named", "[nccl][e2e]") {
  const std::string call = GENERATE("ncclCommInitRankConfig 1", "ncclAllGather 3",
                                    "ncclReduceScatter 2", "ncclCommGetAsyncError 40");
  const Gpus gpus;
  const test::ResumableRun run{.ranks = 2, .stage = 3, .bf16 = true};
  const test::TrainRun refused =
      test::run_train(Gpus::options(2), run.config(), gpus.file("out"), run.arguments(3),
                      gpus.environment({{"DSTRAIN_STAND_IN_REFUSES", call},
                                        {"DSTRAIN_STAND_IN_REFUSES_RANK", "1"}}));
  CAPTURE(call, refused.err);
  CHECK(refused.status != 0);
  CHECK_THAT(refused.err,
             ContainsSubstring(call.substr(0, call.find(' ')) + ": unhandled system error") &&
                 ContainsSubstring("rank 1"));
}

TEST_CASE("NCCL runs: a GPU that has less free than the first is named by its rank",
          "[cuda][e2e]") {
  const Gpus gpus;
  const test::ResumableRun run{.ranks = 2};
  const test::TrainRun refused =
      test::run_train(Gpus::options(2), run.config(), gpus.file("out"), run.arguments(1),
                      gpus.environment({{"DSTRAIN_STAND_IN_MEMORY", "8000000000 800000000"}}));
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("[rank 1]: dstrain: error: the run needs ") &&
                              ContainsSubstring("GPU 1 has 763 MiB free for each"));
  CHECK(test::read_metrics(gpus.file("out")).empty());
}
