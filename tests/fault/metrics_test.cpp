// metrics.jsonl on a disk that is full for a while, or for good.
#include <csignal>

#include <fmt/format.h>

#include "runtime/rank/worker_env.h"
#include "tests/e2e/resumable_run.h"
#include "tests/fault/saved_steps.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::ResumableRun;

namespace {

/// Rows 1, 4, 8, 12 ..., and a write to their file that fails.
ResumableRun failing(const std::string& fault) {
  return {.ranks = 2,
          .more = {"--save_steps", "5", "--logging_steps", "4"},
          .environment = {{"LD_PRELOAD", DSTRAIN_FAULT_LIBRARY},
                          {"DSTRAIN_FAULT_FILES", "metrics.jsonl"},
                          {"DSTRAIN_FAULT", fault},
                          {"DSTRAIN_FAULT_RANK", "0"},
                          {"OMP_NUM_THREADS", "1"}}};
}

std::vector<std::int64_t> steps_of(const std::vector<json>& rows) {
  std::vector<std::int64_t> steps;
  for (const json& row : rows) steps.push_back(row.at("step"));
  return steps;
}

using Steps = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("Metrics: a line that found no disk space is written in the end", "[fault][metrics]") {
  const test::TempDir folder;
  const std::string way = GENERATE("28", "short");
  const int number = GENERATE(2, 3, 4);  // 4: the last row, after which no other is written
  const test::TrainRun run =
      failing(fmt::format("write:{}:{}", number, way)).train(folder.path() / "out", 12);
  CAPTURE(way, number, run.err);
  CHECK(run.status == 0);
  CHECK(steps_of(run.metrics) == Steps{1, 4, 8, 12});
}

TEST_CASE("Metrics: a stopped run writes its waiting lines", "[fault][metrics]") {
  const test::TempDir folder;
  ResumableRun run = failing("write:2:28");
  // Row 1, and then one whose successor does not come before the stop.
  const std::string output = folder.path() / "out";
  test::Launch launch(run.endless(output, {"--logging_steps", "300"}),
                      {.env = run.environment, .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 300/"));
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 75);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(), ContainsSubstring("the lines are kept and tried again"));
  CHECK(steps_of(test::read_metrics(output)) == Steps{1, 300});
}

TEST_CASE("Metrics: lost lines are reported when the run resumes", "[fault][metrics]") {
  const test::TempDir folder;
  ResumableRun run = failing("write:3+:28");
  const test::TrainRun cut = run.train(folder.path() / "out", 12);
  CAPTURE(cut.err);
  CHECK(cut.status == status::unsaved);
  CHECK(steps_of(cut.metrics) == Steps{1, 4});
  CHECK_THAT(cut.err, ContainsSubstring("the lines from step 8 on are lost"));
  CHECK(test::whole_steps(folder.path() / "out").front() == 12);
  run.environment = {{"OMP_NUM_THREADS", "1"}};
  const test::TrainRun rest = run.resume(folder.path() / "out", 20);
  CHECK(rest.status == 0);
  CHECK_THAT(rest.err, ContainsSubstring("the lines of steps 5 to 12 are missing"));
  CHECK(steps_of(rest.metrics) == Steps{1, 4, 12, 16, 20});
  CHECK(rest.metrics.at(2) == json{{"step", 12}, {"missing_after_step", 4}});
  // That was all there is to say of it.
  const test::TrainRun last = run.resume(folder.path() / "out", 24);
  CHECK_THAT(last.err, !ContainsSubstring("missing"));
  CHECK(steps_of(last.metrics) == Steps{1, 4, 12, 16, 20, 24});
}
