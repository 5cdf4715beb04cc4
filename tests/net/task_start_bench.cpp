// How long a launch through srun, mpirun and mpiexec takes, beside what they take to do nothing.
// DSTRAIN_START_ROUNDS sets the number of rounds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "tests/e2e/resumable_run.h"
#include "tests/net/task_starters.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using test::Launch;
using Words = std::vector<std::string>;

namespace {

double seconds_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Three tasks that do nothing.
Words bare_command(const std::string& launcher, const std::string& job) {
  if (launcher == "openmpi") {
    return {"/usr/bin/mpirun.openmpi",
            "--allow-run-as-root",
            "--oversubscribe",
            "--host",
            "localhost:3",
            "true"};
  }
  if (launcher == "mpich") return {"/usr/bin/mpiexec.mpich", "-n", "3", "true"};
  return {"/usr/bin/srun", "--jobid=" + job, "--nodes=2", "--ntasks=3", "true"};
}

}  // namespace

TEST_CASE("Task launch: from the command to the first step", "[bench]") {
  const std::string launcher = test::any_task_launcher();
  const test::TaskStarterUnderTest starter(launcher);
  const test::TempDir folder;
  Words words = starter.options();
  const Words training =
      test::ResumableRun{.ranks = 3}.endless(folder.path() / "out", {"--max_steps", "1"});
  words.insert(words.end(), std::find(training.begin(), training.end(), "train"), training.end());
  std::vector<double> bare;
  std::vector<double> step;
  for (int round = 0; round < test::count_from("DSTRAIN_START_ROUNDS", 7); ++round) {
    bare.push_back(seconds_of([&] { test::output_of(bare_command(launcher, starter.job())); }));
    std::filesystem::remove_all(folder.path() / "out");
    std::optional<Launch> launch;
    step.push_back(seconds_of([&] {
      launch.emplace(words, Launch::Options{.env = starter.environment(),
                                            .directory = test::golden_folder.string()});
      REQUIRE(launch->wait_for_output("step 1/"));
    }));
    REQUIRE(launch->wait() == 0);  // else the next one waits for what it holds
  }
  std::printf("%-8s bare %.3f s, to the first step %.3f s\n", launcher.c_str(), median(bare),
              median(step));
}
