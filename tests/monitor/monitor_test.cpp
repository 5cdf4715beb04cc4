#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/monitor/metrics_file.h"
#include "runtime/monitor/progress.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

TEST_CASE("MetricsFile: numbers come back as they were", "[monitor]") {
  const test::TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  monitor::StepMetrics step;
  step.step = 7;
  step.loss = 2.0 / 3.0;
  step.gradient_norm = 1e-300;
  step.learning_rate = 0.1;
  step.tokens = 9'007'199'254'740'993;
  step.memory = {1, 2, 3, 4};
  step.device_categories = {5, 6, 7, 8, 9};
  step.planned = {{{10, 11, 12, 13, 14}, {15, 0, 0, 0, 1}}};
  monitor::MetricsFile file(path);
  file.write(step);
  file.write(monitor::EvalMetrics{7, 0.5});
  std::ifstream lines(path);
  std::string line;
  std::getline(lines, line);
  const auto read = nlohmann::json::parse(line);
  CHECK(read.at("step") == 7);
  CHECK(read.at("loss").get<double>() == 2.0 / 3.0);
  CHECK(read.at("grad_norm").get<double>() == 1e-300);
  CHECK(read.at("learning_rate").get<double>() == 0.1);
  CHECK(read.at("tokens").get<std::int64_t>() == 9'007'199'254'740'993);
  CHECK(read.at("memory").at("nvme") == 4);
  CHECK(read.at("device_memory").at("buffers") == 9);
  CHECK(read.at("planned_device_memory").at("buffers") == 14);
  CHECK(read.at("planned_memory").at("device") == 60);
  CHECK(read.at("planned_memory").at("host") == 16);
  std::getline(lines, line);
  const auto evaluated = nlohmann::json::parse(line);
  CHECK(evaluated.at("eval_loss") == 0.5);
  CHECK(evaluated.at("perplexity").get<double>() == Approx(1.6487212707));
}

TEST_CASE("MetricsFile: a folder that is not there is an error", "[monitor]") {
  const test::TempDir folder;
  CHECK_THROWS_AS(monitor::MetricsFile(folder.path() / "absent/metrics.jsonl"), Error);
}

TEST_CASE("progress_line: what a person wants to see", "[monitor]") {
  CHECK(monitor::progress_line({.step = 120,
                                .steps = 400,
                                .loss = 2.31849,
                                .learning_rate = 6e-4,
                                .gradient_norm = 0.8123,
                                .tokens_per_second = 1'031'204.4,
                                .seconds_left = 72}) ==
        "step 120/400 | loss 2.3185 | lr 6.00e-04 | norm 0.812 | 1,031,204 tokens/s | ETA 1m12s");
}
