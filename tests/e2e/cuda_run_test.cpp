// Training on a GPU: PyTorch's losses, every stage, ranks that share it, offload, going on.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/device_trace.h"
#include "tests/e2e/resumable_run.h"
#include "tests/e2e/trace_spans.h"
#include "tests/support/catch.h"
#include "tests/support/child_process.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_gpu.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::golden_folder;
using test::worst_relative;
using Words = std::vector<std::string>;

namespace {

std::vector<launcher::EnvVar> environment() {
  test::use_test_gpu();
  return {{"DSTRAIN_GPU_DIRECTORY", test::test_gpu_directory()}};
}

Words launch_options(int ranks) {
  Words options{"--device", "cuda", "--num_gpus", std::to_string(ranks)};
  if (ranks > 1) options.emplace_back("--oversubscribe");
  return options;
}

/// As many as what stands in for a GPU has time for: the second loss shows the first update.
std::span<const json> steps_of(const json& golden) {
  const auto& steps = golden.at("steps").get_ref<const json::array_t&>();
  return std::span(steps).first(test::stands_in_for_gpu() ? 2 : steps.size());
}

struct Place {
  int ranks;
  int stage;
  const char* half;  ///< or null
};

test::TrainRun run_case(const json& golden, const Place& place, const std::filesystem::path& out) {
  json config = golden.at("ds_config");
  config["zero_optimization"]["stage"] = place.stage;
  if (place.half != nullptr) config[place.half]["enabled"] = true;
  if (place.stage == 3) config["zero_optimization"]["stage3_param_persistence_threshold"] = 300;
  Words arguments = golden.at("arguments");
  *(std::ranges::find(arguments, "--max_steps") + 1) = std::to_string(steps_of(golden).size());
  return test::run_train(launch_options(place.ranks), config, out, arguments, environment());
}

struct Limits {
  double loss;
  double norm;
};

void check_stages(const std::string& name, int ranks, const char* half, const Limits& limits) {
  const json golden = test::read_json(golden_folder / (name + ".json"));
  const json steps = json::array_t(steps_of(golden).begin(), steps_of(golden).end());
  const test::TempDir folder;
  for (const int stage : {0, 1, 2, 3}) {
    if (ranks == 1 && (stage == 1 || stage == 2)) continue;  // nothing is shared out
    CAPTURE(name, ranks, stage);
    const test::TrainRun run = run_case(golden, {ranks, stage, half}, folder.path() / "out");
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    CHECK_THAT(run.err, ContainsSubstring("the ranks compute on cuda"));
    REQUIRE(run.metrics.size() == steps.size());
    CHECK(worst_relative(run.metrics, steps, "loss") < limits.loss);
    CHECK(worst_relative(run.metrics, steps, "grad_norm") < limits.norm);
    const json& last = run.metrics.back();
    CHECK(last.at("device_memory") == last.at("planned_device_memory"));
  }
}

}  // namespace

TEST_CASE("CUDA runs: every stage follows PyTorch in fp32", "[cuda][e2e]") {
  const int ranks = GENERATE(1, 2);
  check_stages("everything", ranks, nullptr, {1e-5, 1e-4});
  if (ranks == 2) check_stages("lamb", ranks, nullptr, {1e-5, 1e-4});
}

TEST_CASE("CUDA runs: every stage follows PyTorch in bf16", "[cuda][e2e]") {
  check_stages("everything", GENERATE(1, 2), "bf16", {5e-4, 8e-3});
}

TEST_CASE("CUDA runs: every stage follows PyTorch in fp16", "[cuda][e2e]") {
  check_stages("everything", GENERATE(1, 2), "fp16", {1.1e-4, 1.8e-3});
}

TEST_CASE("CUDA runs: TF32 is close to fp32 but not equal", "[cuda][e2e]") {
  const test::TempDir folder;
  const test::ResumableRun run{.ranks = 1};
  const auto train = [&](const char* name, const char* tf32) {
    Words arguments = run.arguments(3);
    arguments.insert(arguments.end(), {"--tf32", tf32, "--config_overrides",
                                       "n_layer=1,n_embd=16,n_head=2,vocab_size=160,n_positions=8",
                                       "--block_size", "8"});
    test::TrainRun made = test::run_train(launch_options(1), run.config(), folder.path() / name,
                                          arguments, environment());
    CAPTURE(made.err);
    REQUIRE(made.status == 0);
    return made.metrics;
  };
  const json exact = train("fp32", "false");
  const double apart = worst_relative(train("TF32", "true"), exact, "loss");
  CHECK(apart > 0);
  CHECK(apart < 1e-3);
  Words on_cpus = run.arguments(1);
  on_cpus.emplace_back("--tf32");
  const test::TrainRun on_cpu =
      test::run_train({"--device", "cpu"}, run.config(), folder.path() / "cpu", on_cpus);
  CHECK(on_cpu.status == 0);
  CHECK_THAT(on_cpu.err, ContainsSubstring("--tf32: has no effect: TF32 is of GPUs"));
}

TEST_CASE("CUDA runs: stages and offload have the same bits and runs repeat", "[cuda][e2e]") {
  const test::TempDir folder;
  const json host{{"device", "cpu"}};
  const json disk{{"device", "nvme"}, {"nvme_path", folder.path().string()}};
  const auto results = [&](int stage, const json& zero, bool checkpointed, const char* name) {
    const test::ResumableRun run{.ranks = 2,
                                 .stage = stage,
                                 .bf16 = true,
                                 .micro_batch = 3,
                                 .checkpointed_activations = checkpointed,
                                 .zero = zero};
    const test::TrainRun made = test::run_train(
        launch_options(2), run.config(), folder.path() / name, run.arguments(3), environment());
    CAPTURE(name, made.err);
    REQUIRE(made.status == 0);
    return test::results_of(made);
  };
  const auto expected = results(2, json::object(), false, "stage 2");
  CHECK(results(2, json::object(), false, "again") == expected);
  CHECK(results(3, json::object(), false, "stage 3") == expected);
  CHECK(results(3, {{"overlap_comm", true}}, true, "overlap") == expected);
  CHECK(results(3, {{"overlap_comm", true}, {"offload_optimizer", host}, {"offload_param", host}},
                true, "host") == expected);
  CHECK(results(3, {{"offload_optimizer", disk}, {"offload_param", disk}}, true, "disk") ==
        expected);
}

TEST_CASE("CUDA runs: a run has the same bits in whatever order its work is done", "[cuda][e2e]") {
  if (!test::stands_in_for_gpu()) test::skip("a GPU has its own order");
  const json host{{"device", "cpu"}};
  const test::ResumableRun run{
      .ranks = 2,
      .stage = 3,
      .bf16 = true,
      .zero = {{"overlap_comm", true}, {"offload_optimizer", host}, {"offload_param", host}}};
  const auto results = [&](const std::vector<launcher::EnvVar>& more) {
    std::vector<launcher::EnvVar> variables = environment();
    variables.insert(variables.end(), more.begin(), more.end());
    const test::TempDir folder;
    const test::TrainRun made = test::run_train(launch_options(2), run.config(),
                                                folder.path() / "out", run.arguments(2), variables);
    CAPTURE(made.err);
    REQUIRE(made.status == 0);
    return test::results_of(made);
  };
  const auto expected = results({});
  for (const std::string seed : {"1", "2"}) {
    CAPTURE(seed);
    CHECK(results({{test::stand_in_seed, seed}}) == expected);
  }
}

TEST_CASE("CUDA runs: a resumed run has the same bits", "[cuda][e2e]") {
  const test::TempDir folder;
  const test::ResumableRun run{.ranks = 2, .stage = 3, .bf16 = true};
  const auto train = [&](const char* name, int steps, const Words& more) {
    Words arguments = run.arguments(steps);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::TrainRun made = test::run_train(launch_options(2), run.config(),
                                                folder.path() / name, arguments, environment());
    CAPTURE(made.err);
    REQUIRE(made.status == 0);
    return made;
  };
  const auto whole = train("whole", 4, {});
  train("cut", 2, {"--save_steps", "2"});
  const auto last = train("cut", 4, {"--save_steps", "2", "--resume_from_checkpoint", "latest"});
  CHECK(test::results_of(last) == test::results_of(whole));
  CHECK(test::read_bytes(folder.path() / "cut/model.safetensors") ==
        test::read_bytes(folder.path() / "whole/model.safetensors"));
}

TEST_CASE("CUDA runs: a timeline has the times of the GPU", "[cuda][e2e][profile]") {
  constexpr int steps = 2;
  constexpr int slow_ms = 5;
  const test::TempDir folder;
  const std::string profile = (folder.path() / "profile.json").string();
  const test::ResumableRun run{.ranks = 1, .more = {"--profile", profile}};
  auto variables = environment();
  // That which ends the sum of a segment's squares.
  variables.push_back({"DSTRAIN_STAND_IN_SLOW", fmt::format("Fold {}", slow_ms)});
  const test::TrainRun made = test::run_train(
      launch_options(1), run.config(), folder.path() / "out", run.arguments(steps), variables);
  CAPTURE(made.err, made.out);
  REQUIRE(made.status == 0);
  CHECK_THAT(made.out, ContainsSubstring(" ms exposed)"));
  const json trace = test::read_json(profile);
  test::check_device_trace(trace, {.ranks = 1, .steps = steps});
  REQUIRE(made.metrics.size() == steps);
  const json& gpus = made.metrics.back().at("gpus");
  const auto& events = trace.at("traceEvents").get_ref<const json::array_t&>();
  CHECK(std::ranges::count(events, "C", [](const json& e) { return e.at("ph"); }) == steps);
  if (test::stands_in_for_gpu()) {
    CHECK(gpus.at("watts").get<double>() == Catch::Approx(100).epsilon(0.01));
    CHECK(gpus.at("busy_percent") == 90);
    CHECK(gpus.at("celsius") == 40);
  }
  const test::TraceSpans compute = test::spans_of(trace, 0, "compute");
  CHECK(test::count(compute, "wait") == 0);
  const double least = test::stands_in_for_gpu() ? 1000 * slow_ms : 0;
  for (const json& span : compute) {
    if (span.at("cat") == "norm") CHECK(span.at("dur") >= least);
  }
}

TEST_CASE("CUDA runs: copies have lanes of their own in a timeline", "[cuda][e2e][profile]") {
  constexpr int steps = 2;
  const test::TempDir folder;
  const std::string profile = (folder.path() / "profile.json").string();
  const json host{{"device", "cpu"}};
  const test::ResumableRun run{.ranks = 2,
                               .stage = 3,
                               .bf16 = true,
                               .checkpointed_activations = true,
                               .zero = {{"overlap_comm", true}, {"offload_optimizer", host}},
                               .more = {"--profile", profile}};
  json config = run.config();
  config["activation_checkpointing"]["cpu_checkpointing"] = true;
  const test::TrainRun made = test::run_train(launch_options(2), config, folder.path() / "out",
                                              run.arguments(steps), environment());
  CAPTURE(made.err, made.out);
  REQUIRE(made.status == 0);
  const json trace = test::read_json(profile);
  test::check_device_trace(trace, {.ranks = 2, .steps = steps});
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(test::count(test::spans_of(trace, rank, "copies"), "copy") > 0);
    // Each part that the host updates has come as gradients and goes back as parameters.
    const auto updates = test::count(test::spans_of(trace, rank, "host"), "update");
    CHECK(test::count(test::spans_of(trace, rank, "transfers"), "copy") >= 2 * updates);
    CHECK(test::count(test::spans_of(trace, rank, "communication"), "all_gather") > 0);
    CHECK(test::count(test::spans_of(trace, rank, "host"), "update") > 0);
    CHECK(test::count(test::spans_of(trace, rank, "compute"), "update") == 0);
  }
}

namespace {

/// What a profiler saw of one thread, or of ranges of none.
struct SeenRanges {
  std::vector<std::string> open;     ///< now
  std::set<std::string> paths;       ///< "forward h.0/matmul"
  std::vector<std::string> started;  ///< of no thread, in order
};

/// By thread; a range that ends is the thread's last, or fails.
std::map<long, SeenRanges> read_ranges(const std::filesystem::path& path) {
  std::map<long, SeenRanges> threads;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    long thread = 0;
    std::size_t number = 0;
    std::string name;
    words >> thread >> number >> std::ws;
    std::getline(words, name);
    SeenRanges& seen = threads[thread];
    if (thread == 0) {
      if (name != "-") seen.started.push_back(name);
      continue;
    }
    if (name == "-") {
      REQUIRE(seen.open.size() == number + 1);
      seen.open.pop_back();
    } else {
      REQUIRE(seen.open.size() == number);
      seen.open.push_back(name);
      seen.paths.insert(fmt::format("{}", fmt::join(seen.open, "/")));
    }
  }
  return threads;
}

/// Built beside the tests, or packed with them (make_bundle.sh).
std::filesystem::path nvtx_log() {
#ifdef DSTRAIN_NVTX_LOG
  if (std::filesystem::exists(DSTRAIN_NVTX_LOG)) return DSTRAIN_NVTX_LOG;
#endif
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libnvtx_log.so";
}

}  // namespace

TEST_CASE("CUDA runs: a profiler sees steps and units and ops as ranges", "[cuda][e2e][profile]") {
  if (!std::filesystem::exists(nvtx_log())) test::skip("NVTX's header was not there to build with");
  constexpr int steps = 2;
  const bool profiled = GENERATE(false, true);
  CAPTURE(profiled);
  const test::TempDir folder;
  const std::string log = (folder.path() / "ranges").string();
  test::ResumableRun run{.ranks = 2, .stage = 2};
  if (profiled) run.more = {"--profile", (folder.path() / "profile.json").string()};
  auto variables = environment();
  variables.push_back({"NVTX_INJECTION64_PATH", nvtx_log().string()});
  variables.push_back({"NVTX_LOG", log});
  const test::TrainRun made = test::run_train(
      launch_options(2), run.config(), folder.path() / "out", run.arguments(steps), variables);
  CAPTURE(made.err, made.out);
  REQUIRE(made.status == 0);
  int ranks = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    if (!file.path().filename().string().starts_with("ranges.")) continue;
    const std::map<long, SeenRanges> threads = read_ranges(file.path());
    if (!threads.contains(0)) continue;  // a launcher that looked at the GPU
    ++ranks;
    CHECK(threads.at(0).started == std::vector<std::string>{"step 1", "step 2"});
    std::set<std::string> paths;
    for (const auto& [thread, seen] : threads) {
      CHECK(seen.open.empty());
      paths.insert(seen.paths.begin(), seen.paths.end());
    }
    CAPTURE(paths);
    for (const char* const path :
         {"forward h.0/attention_forward", "backward h.0/attention_backward",
          "backward head/classifier_loss", "norm/add_squares", "optimizer_step",
          "optimizer_step/update/update", "reduce_scatter"}) {
      CHECK(paths.contains(path));
    }
  }
  CHECK(ranks == 2);
}

TEST_CASE("CUDA runs: buffers are pinned whatever the user's lock limit", "[cuda][e2e]") {
  const test::TempDir folder;
  const json pinned{{"device", "cpu"}, {"pin_memory", true}};
  const test::ResumableRun run{.ranks = 1, .stage = 1, .zero = {{"offload_optimizer", pinned}}};
  const std::vector<launcher::EnvVar> variables = environment();
  const std::string told = test::in_child([&]() -> std::string {
    const std::string refused = test::limit_locked_memory(4096);
    if (!refused.empty()) return refused;
    const test::TrainRun limited = test::run_train(
        launch_options(1), run.config(), folder.path() / "out", run.arguments(1), variables);
    return fmt::format("{} {}", limited.status, limited.err);
  });
  if (told.starts_with("skip")) test::skip(told);
  CHECK_THAT(told, Catch::Matchers::StartsWith("0 ") && ContainsSubstring("; pinned ") &&
                       !ContainsSubstring("pin_memory"));
}

TEST_CASE("CUDA runs: a plan beyond what the GPU has free is refused first", "[cuda][e2e]") {
  if (!test::stands_in_for_gpu()) test::skip("a GPU has more memory");
  const test::TempDir folder;
  const test::ResumableRun run{.ranks = 2};
  std::vector<launcher::EnvVar> small = environment();
  small.push_back({"DSTRAIN_STAND_IN_MEMORY", "900000000"});
  const test::TrainRun refused = test::run_train(launch_options(2), run.config(),
                                                 folder.path() / "out", run.arguments(1), small);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("GPU 0 has 429 MiB free for each, of which CUDA's "
                                            "libraries may take 768 MiB"));
}

TEST_CASE("CUDA runs: a run that does not fit is refused with one that does", "[cuda][e2e]") {
  const test::TempDir folder;
  Words options = launch_options(1);
  options.insert(options.end(), {"--device_memory", "1MiB"});
  const test::ResumableRun run{.ranks = 1};
  const test::TrainRun refused = test::run_train(options, run.config(), folder.path() / "out",
                                                 run.arguments(1), environment());
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err,
             ContainsSubstring("--device_memory allows 1.00 MiB (") &&
                 ContainsSubstring("it would need less with a micro batch of 6 (") &&
                 ContainsSubstring(", --gradient_checkpointing (") &&
                 ContainsSubstring(", offload_optimizer and offload_param to cpu in stage 3 ("));
}
