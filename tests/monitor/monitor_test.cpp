#include <fstream>

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/monitor/metrics_file.h"
#include "runtime/monitor/progress_line.h"
#include "tests/support/catch.h"
#include "tests/support/file_limit.h"
#include "tests/support/largest_allocation.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

namespace {

/// Of a test.
struct SetClock final : Clock {
  [[nodiscard]] double now_seconds() const override { return now; }
  double now = 0;
};

}  // namespace

TEST_CASE("GpuMeter: watts are the mean since the last reading a second ago or more", "[monitor]") {
  SetClock clock;
  GpuReading reading{.joules = 1000, .watts = 50, .busy_percent = 10, .celsius = 30};
  int readings = 0;
  monitor::GpuMeter meter(
      [&] {
        ++readings;
        return std::optional(reading);
      },
      clock);
  CHECK(meter.load()->watts == 50);  // nothing was taken before
  clock.now = 0.9;
  reading = {.joules = 1300, .watts = 60, .busy_percent = 99, .celsius = 80};
  CHECK(meter.load()->busy_percent == 10);
  CHECK(readings == 1);
  clock.now = 1.5;
  CHECK(meter.load()->watts == 200);
  CHECK(meter.load()->celsius == 80);
  CHECK(readings == 2);
  clock.now = 3;
  reading = {.watts = 70};  // such a GPU counts no energy, and says little else
  CHECK(meter.load()->watts == 70);
  CHECK_FALSE(meter.load()->busy_percent);
}

TEST_CASE("GpuMeter: without a GPU there is nothing", "[monitor]") {
  const SetClock clock;
  CHECK_FALSE(monitor::GpuMeter(nullptr, clock).load());
  CHECK_FALSE(monitor::GpuMeter([] { return std::nullopt; }, clock).load());
}

TEST_CASE("GpuMeter: GPUs together take the sum and the hottest counts", "[monitor]") {
  const std::vector<monitor::GpuLoad> gpus{{.watts = 100, .busy_percent = 50, .celsius = 40},
                                           {},
                                           {.watts = 200, .busy_percent = 100, .celsius = 60}};
  const monitor::GpuLoad all = monitor::load_of_all(gpus);
  CHECK(all.watts == 300);
  CHECK(all.busy_percent == 75);
  CHECK(all.celsius == 60);
  CHECK_FALSE(monitor::load_of_all({}).watts);
}

TEST_CASE("MetricsFile: numbers survive a round trip", "[monitor]") {
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
  step.gpus = monitor::GpuLoad{.watts = 0.1, .celsius = 40};
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
  CHECK(read.at("gpus") ==
        nlohmann::json{{"watts", 0.1}, {"busy_percent", nullptr}, {"celsius", 40}});
  std::getline(lines, line);
  const auto evaluated = nlohmann::json::parse(line);
  CHECK(evaluated.at("eval_loss") == 0.5);
  CHECK(evaluated.at("perplexity").get<double>() == Catch::Approx(1.6487212707));
}

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::filesystem::path& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

monitor::StepMetrics row(std::int64_t step) {
  monitor::StepMetrics metrics;
  metrics.step = step;
  return metrics;
}

std::string number(std::int64_t step) {
  return "{\"step\":" + std::to_string(step) + "}";
}

}  // namespace

TEST_CASE("MetricsFile: a resumed run reports missing lines", "[monitor]") {
  const test::TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  struct Row {
    std::string before;
    monitor::MetricsResume resume;
    Lines after;
    std::string missing;
  };
  const std::string three = number(1) + "\n" + number(2) + "\n" + number(3) + "\n";
  const auto row = GENERATE_COPY(values<Row>({
      {three, {3, 3}, {number(1), number(2), number(3)}, ""},
      {three, {2, 2}, {number(1), number(2)}, ""},
      {three, {3, 0}, {number(1), number(2), number(3)}, ""},
      {three, {0, 0}, {}, ""},
      {three,
       {9, 7},
       {number(1), number(2), number(3), R"({"step":7,"missing_after_step":3})"},
       "the lines of steps 4 to 7 are missing"},
      {three + R"({"step":4,"lo)",
       {5, 4},
       {number(1), number(2), number(3), R"({"step":4,"missing_after_step":3})"},
       "the lines of steps 4 to 4 are missing"},
      {three + R"({"step":4,"lo)", {3, 3}, {number(1), number(2), number(3)}, ""},
      {number(1) + "\n{\"st\x15p\":2}\n" + number(3) + "\n",
       {3, 3},
       {number(1), R"({"step":1,"unreadable_lines":1})", number(3)},
       "1 lines that cannot be read"},
      {"", {5, 5}, {R"({"step":5,"missing_after_step":0})"}, "steps 1 to 5 are missing"},
  }));
  std::ofstream(path) << row.before;
  {
    const monitor::MetricsFile file(path, row.resume);
    CAPTURE(row.before, row.resume.last_step);
    CHECK(lines_of(path) == row.after);
    CHECK_THAT(file.missing(), Catch::Matchers::ContainsSubstring(row.missing));
    CHECK(file.missing().empty() == row.missing.empty());
  }
  // What was told once is not told again.
  const monitor::MetricsFile again(path, row.resume);
  CHECK(lines_of(path) == row.after);
  CHECK(again.missing().empty());
}

TEST_CASE("MetricsFile: huge foreign content uses little memory", "[monitor]") {
  const test::TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  const bool holes = GENERATE(false, true);
  std::ofstream(path) << number(1) << "\n" << (holes ? "" : std::string(5'000'000, 'x') + "\n");
  const std::uintmax_t size = std::filesystem::file_size(path);
  if (holes) std::filesystem::resize_file(path, size + 300'000'000);
  std::ofstream(path, std::ios::app) << "\n" << number(2) << "\n" << number(3) << "\n";
  test::take_largest_allocation();
  const monitor::MetricsFile file(path, {2, 2});
  CHECK(test::take_largest_allocation() < 4'000'000);
  const std::string gap =
      holes ? R"({"step":1,"unreadable_lines":1})" : R"({"step":1,"unreadable_lines":2})";
  CHECK(lines_of(path) == Lines{number(1), gap, number(2)});
}

TEST_CASE("MetricsFile: a path that is not a regular file is refused", "[monitor]") {
  const test::TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  const monitor::MetricsResume resume{GENERATE(0, 3), 0};
  std::ofstream(folder.path() / "victim") << "precious";
  std::filesystem::create_symlink("victim", path);
  CHECK_THROWS_WITH(monitor::MetricsFile(path, resume),
                    Catch::Matchers::ContainsSubstring("a symbolic link"));
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(monitor::MetricsFile(path, resume),
                    Catch::Matchers::ContainsSubstring("regular"));
  CHECK(lines_of(folder.path() / "victim") == Lines{"precious"});
}

TEST_CASE("MetricsFile: a removed file is reported", "[monitor]") {
  const test::TempDir folder;
  const auto path = folder.path() / "out/metrics.jsonl";
  std::filesystem::create_directory(path.parent_path());
  monitor::MetricsFile file(path);
  file.write(row(1));
  CHECK(file.failure().empty());
  std::filesystem::remove_all(path.parent_path());
  file.write(row(2));
  CHECK_THAT(file.failure(), Catch::Matchers::ContainsSubstring(path.string()) &&
                                 Catch::Matchers::ContainsSubstring("was removed"));
}

TEST_CASE("MetricsFile: lines wait for room and none is lost", "[monitor]") {
  const test::TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  monitor::MetricsFile file(path);
  file.write(row(1));
  {
    const test::FileLimit limit(std::filesystem::file_size(path) +
                                10);  // a line is cut in its middle
    for (int step = 2; step <= 9; ++step) file.write(row(step));
    CHECK_THAT(file.failure(), Catch::Matchers::ContainsSubstring("File too large"));
    CHECK(lines_of(path).size() == 1);  // the beginning of a line does not stay
  }
  file.flush();
  CHECK(file.failure().empty());
  const Lines lines = lines_of(path);
  REQUIRE(lines.size() == 9);
  for (int step = 1; step <= 9; ++step) {
    CHECK(nlohmann::json::parse(lines.at(static_cast<std::size_t>(step - 1))).at("step") == step);
  }
}

TEST_CASE("MetricsFile: a gap line replaces the oldest of too many waiting lines", "[monitor]") {
  const test::TempDir folder;
  const auto path = folder.path() / "metrics.jsonl";
  const int steps = 40'000;
  monitor::MetricsFile file(path);
  file.write(row(1));
  {
    const test::FileLimit limit(std::filesystem::file_size(path) + 10);
    for (int step = 2; step <= steps; ++step) file.write(row(step));
  }
  file.flush();
  const Lines lines = lines_of(path);
  const auto gap = nlohmann::json::parse(lines.at(1));
  CHECK(gap.at("missing_after_step") == 1);
  const auto next = gap.at("step").get<std::int64_t>() + 1;
  CHECK(next < steps);
  REQUIRE(lines.size() == 2 + static_cast<std::size_t>(steps - next + 1));
  CHECK(nlohmann::json::parse(lines.at(2)).at("step") == next);
  CHECK(nlohmann::json::parse(lines.back()).at("step") == steps);
  CHECK(std::filesystem::file_size(path) < 18'000'000);
}

TEST_CASE("MetricsFile: a folder that is not there is an error", "[monitor]") {
  const test::TempDir folder;
  CHECK_THROWS_AS(monitor::MetricsFile(folder.path() / "absent/metrics.jsonl"), Error);
}

TEST_CASE("ProgressLine: shows step and loss and rate and time left", "[monitor]") {
  CHECK(monitor::to_text(monitor::ProgressLine{.step = 120,
                                               .steps = 400,
                                               .loss = 2.31849,
                                               .learning_rate = 6e-4,
                                               .gradient_norm = 0.8123,
                                               .tokens_per_second = 1'031'204.4,
                                               .seconds_left = 72}) ==
        "step 120/400 | loss 2.3185 | lr 6.00e-04 | norm 0.812 | 1,031,204 tokens/s | ETA 1m12s");
}

TEST_CASE("ProgressLine: an evaluation shows samples and time left", "[monitor]") {
  CHECK(
      monitor::to_text(monitor::EvaluationProgress{.samples = 280, .of = 1'180, .seconds = 22.4}) ==
      "evaluated 280/1,180 samples | 12.5 samples/s | ETA 1m12s");
}
