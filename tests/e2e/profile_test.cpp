#include <nlohmann/json.hpp>

#include "tests/e2e/trace_spans.h"
#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using nlohmann::json;
using test::count;
using test::nested;
using test::spans_by_thread;

namespace {

constexpr int steps = 3;

std::vector<std::string> golden_run(const std::filesystem::path& profile) {
  return {"--model_name_or_path",
          "model",
          "--train_file",
          "tokens.bin",
          "--block_size",
          "16",
          "--max_steps",
          std::to_string(steps),
          "--profile",
          profile.string()};
}

json ds_config(int stage, bool overlap) {
  return {{"train_micro_batch_size_per_gpu", 2},
          {"zero_optimization", {{"stage", stage}, {"overlap_comm", overlap}}}};
}

}  // namespace

TEST_CASE("profile: the timeline of all ranks", "[e2e][profile]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const bool overlap = GENERATE(false, true);
  CAPTURE(stage, overlap);
  const test::TempDir folder;
  const auto path = folder.path() / "out/profile.json";
  const test::TrainRun run =
      test::run_train(2, ds_config(stage, overlap), folder.path() / "out", golden_run(path));
  CAPTURE(run.err, run.out);
  REQUIRE(run.status == 0);
  CHECK(run.out.find(" ms exposed)") != std::string::npos);
  const json trace = test::read_json(path);
  auto threads = spans_by_thread(trace);
  for (const auto& [thread, spans] : threads) {
    CAPTURE(thread.first, thread.second);
    CHECK(nested(spans));
  }
  for (int rank = 0; rank < 2; ++rank) {
    const test::TraceSpans& compute = threads.at({rank, 0});
    CHECK(count(compute, "step") == steps);
    CHECK(count(compute, "backward") > count(compute, "forward"));  // the head has no forward
    CHECK(count(compute, "optimizer_step") == steps);
    CHECK(count(compute, "norm") > 0);
    CHECK(count(compute, "update") > 0);
    CHECK(count(threads.at({rank, 1}), stage == 0 ? "all_reduce" : "reduce_scatter") > 0);
    CHECK(count(threads.at({rank, 2}), "load") == steps);
    const json& sums = trace.at("metadata").at("ranks").at(static_cast<std::size_t>(rank));
    CHECK(sums.at("rank") == rank);
    CHECK(sums.at("steps") == steps);
    REQUIRE(sums.at("per_step").size() == steps);
    for (const json& step : sums.at("per_step")) {
      const double communication = step.at("communication_seconds");
      const double exposed = step.at("exposed_communication_seconds");
      CHECK(communication > 0);
      CHECK(exposed <= communication);
      CHECK(step.at("compute_seconds") > 0);
      CHECK(step.at("compute_seconds") < step.at("seconds"));
      if (!overlap) CHECK(exposed == Catch::Approx(communication));
    }
  }
}

TEST_CASE("profile: disk activity is shown beside the work that needs it", "[e2e][profile]") {
  const test::TempDir folder;
  const auto path = folder.path() / "profile.json";
  const bool overlap = GENERATE(false, true);
  json config = ds_config(3, overlap);
  config["zero_optimization"]["offload_optimizer"] = {{"device", "nvme"},
                                                      {"nvme_path", folder.path().string()}};
  const test::TrainRun run = test::run_train(2, config, folder.path() / "out", golden_run(path));
  CAPTURE(overlap, run.err, run.out);
  REQUIRE(run.status == 0);
  CHECK(run.out.find("disk reads ") != std::string::npos);
  const json trace = test::read_json(path);
  for (auto& [thread, spans] : spans_by_thread(trace)) CHECK(nested(spans));
  auto threads = spans_by_thread(trace);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(count(threads.at({rank, 3}), "read") >= steps);
    CHECK(count(threads.at({rank, 4}), "write") >= steps);
    const json& sums = trace.at("metadata").at("ranks").at(static_cast<std::size_t>(rank));
    for (const json& step : sums.at("per_step")) {
      const json& optimizer = step.at("optimizer_step");
      const double seconds = optimizer.at("seconds");
      const double reading = optimizer.at("disk_read_seconds");
      CHECK(reading > 0);
      CHECK(reading <= seconds);
      CHECK(reading <= step.at("disk_read_seconds"));
      CHECK(step.at("disk_write_seconds") > 0);
      CHECK(optimizer.at("update_seconds") > 0);
      CHECK(seconds < step.at("seconds"));
    }
  }
}

TEST_CASE("profile: profiling changes no result", "[e2e][profile]") {
  const test::TempDir folder;
  std::vector<std::string> arguments = golden_run(folder.path() / "profile.json");
  const test::TrainRun with =
      test::run_train(2, ds_config(3, true), folder.path() / "with", arguments);
  arguments.resize(arguments.size() - 2);
  const test::TrainRun without =
      test::run_train(2, ds_config(3, false), folder.path() / "without", arguments);
  REQUIRE(with.status == 0);
  REQUIRE(without.status == 0);
  for (std::size_t i = 0; i < steps; ++i) {
    CHECK(with.metrics[i].at("loss") == without.metrics[i].at("loss"));
    CHECK(with.metrics[i].at("grad_norm") == without.metrics[i].at("grad_norm"));
  }
  CHECK(test::read_bytes(folder.path() / "with/model.safetensors") ==
        test::read_bytes(folder.path() / "without/model.safetensors"));
  CHECK(without.out.find("exposed") == std::string::npos);
}

TEST_CASE("profile: a file that cannot be written is found before a rank starts",
          "[e2e][profile]") {
  const test::TempDir folder;
  const auto [name, problem] = GENERATE(table<std::string, std::string>(
      {{"absent/profile.json", "there is no such directory"}, {"", "is not a regular file"}}));
  const std::string path = (folder.path() / name).string();
  const test::TrainRun run =
      test::run_train(2, ds_config(0, false), folder.path() / "out", golden_run(path));
  CHECK(run.status == 2);
  CHECK(run.out.empty());
  CHECK(run.err.find("--profile " + path + ": " + problem) != std::string::npos);
}
