// Processes of a run that saves all the time are killed at any moment, over and over, each run
// going on where the last one was cut.
#include <csignal>
#include <random>

#include <fmt/format.h>

#include "tests/e2e/resumable_run.h"
#include "tests/fault/saved_steps.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

namespace {

namespace fs = std::filesystem;

/// A run that saves after each step; goes on where the last one stopped, if there was one.
class EndlessRun {
 public:
  EndlessRun(const fs::path& output, int ranks, bool begun)
      : launch_(command(output, ranks, begun),
                {.env = {{"OMP_NUM_THREADS", "1"}}, .directory = test::golden_folder.string()}) {}

  [[nodiscard]] test::Launch& launch() { return launch_; }

 private:
  static std::vector<std::string> command(const fs::path& output, int ranks, bool begun) {
    const test::ResumableRun run{.ranks = ranks, .stage = ranks % 4};
    std::vector<std::string> words{"--num_gpus",
                                   fmt::format("{}", ranks),
                                   "train",
                                   "--output_dir",
                                   output.string(),
                                   "--logging_steps",
                                   "1",
                                   "--save_total_limit",
                                   "2"};
    for (const std::string& word : run.arguments(1'000'000)) words.push_back(word);
    words.insert(words.end(), {"--save_steps", "1", "--per_device_train_batch_size",
                               fmt::format("{}", 12 / ranks)});
    if (begun) {
      words.insert(words.end(), {"--resume_from_checkpoint", "latest"});
    } else {
      words.push_back("--overwrite_output_dir");
    }
    return words;
  }

  test::Launch launch_;
};

/// One of its processes, all of them but the launcher, or the launcher: also when it is alone yet.
void kill_some(const test::Launch& launch, std::mt19937& random) {
  std::vector<pid_t> victims = launch.processes();
  const auto way = random() % 3;
  if (way == 0 && !victims.empty()) {
    victims = {victims[random() % victims.size()]};
  } else if (way == 1) {
    std::erase(victims, launch.pid());
  }
  if (way == 2 || victims.empty()) victims = {launch.pid()};
  for (const pid_t pid : victims) ::kill(pid, SIGKILL);
}

}  // namespace

TEST_CASE("Kills: no acknowledged checkpoint is lost", "[fault][checkpoint]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  fs::create_directories(output);
  const unsigned seed = 20'261'122;
  std::mt19937 random(seed);
  std::int64_t newest = 0;
  for (int round = 0; round < test::count_from("DSTRAIN_KILLS", 24); ++round) {
    CAPTURE(seed, round, newest);
    const bool begun = newest > 0;
    EndlessRun run(output, 1 + static_cast<int>(random() % 3), begun);
    test::Launch& launch = run.launch();
    // Of every third run nothing is known to have been saved.
    if (round % 3 != 0) {
      REQUIRE(launch.wait_for_output("saved ", 1 + static_cast<int>(random() % 3)));
    }
    test::wait_for_random_moment(launch.pid(), random, round % 3 == 0 ? 400 : 40);
    kill_some(launch, random);
    // A rank that is killed between its steps may be seen by nobody before the next.
    const int status = launch.wait();
    CAPTURE(launch.out(), launch.err(), status);
    REQUIRE(launch.nothing_left());
    const std::vector<std::int64_t> acknowledged = test::acknowledged_steps(launch.out());
    const std::vector<std::int64_t> whole = test::whole_steps(output);
    for (const std::int64_t step : acknowledged) newest = std::max(newest, step);
    REQUIRE((whole.empty() ? 0 : whole.front()) >= newest);
    newest = whole.empty() ? 0 : whole.front();
  }
  REQUIRE(newest > 0);
}
