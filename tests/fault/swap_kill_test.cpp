// One rank of a run that swaps and saves all the time is killed at any moment, over and over: each
// run goes on where the last one was cut, with the results of a run that was not.
#include <csignal>
#include <random>

#include <fmt/format.h>

#include "tests/fault/saved_steps.h"
#include "tests/fault/swapping_run.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> saving(bool begun) {
  std::vector<std::string> more{"--save_steps", "1", "--save_total_limit", "2"};
  if (begun) more.insert(more.end(), {"--resume_from_checkpoint", "latest"});
  return more;
}

}  // namespace

TEST_CASE("SwapKills: a killed rank leaves nothing and the run resumes", "[fault][offload]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const fs::path disk = folder.path() / "disk";
  fs::create_directory(disk);
  const unsigned seed = 20'261'123;
  std::mt19937 random(seed);
  for (int round = 0; round < test::count_from("DSTRAIN_SWAP_KILLS", 6); ++round) {
    CAPTURE(seed, round);
    const test::ResumableRun run = test::swapping_run(disk, round % 2 == 1);
    test::Launch launch(run.endless(output, saving(round > 0)),
                        {.env = run.environment, .directory = test::golden_folder.string()});
    REQUIRE(launch.wait_for_output("saved ", 1 + static_cast<int>(random() % 2)));
    test::wait_for_random_moment(launch.pid(), random, 40);
    const int rank = static_cast<int>(random() % 2);
    const pid_t pid = test::rank_pid(launch, rank);
    REQUIRE(pid != 0);
    ::kill(pid, SIGKILL);
    CHECK(launch.wait() == 137);
    CHECK_THAT(launch.err(),
               ContainsSubstring(fmt::format("rank {} on localhost (pid {}) was killed by "
                                             "SIGKILL",
                                             rank, pid)));
    REQUIRE(launch.nothing_left());
    REQUIRE(fs::is_empty(disk));
  }
  const std::int64_t newest = test::whole_steps(output).front();
  const int until = static_cast<int>(newest) + 2;
  const test::TrainRun rest = test::swapping_run(disk).resume(output, until);
  CAPTURE(newest, rest.err);
  REQUIRE(rest.status == 0);
  const test::TrainRun reference = test::plain_run().train(folder.path() / "plain", until);
  CHECK(results_of(rest) == results_of(reference));
}
