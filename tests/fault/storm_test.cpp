// Launcher, agent or a rank is killed at any moment, over and over: nothing is left, and whoever
// was killed is named.
#include <csignal>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include "tests/fault/saved_steps.h"
#include "tests/fault/swapping_run.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using Words = std::vector<std::string>;

namespace {

/// Ranks that only wait, or that train.
Words command(int ranks, bool trains, const std::filesystem::path& output) {
  Words words{"--num_gpus", fmt::format("{}", ranks), "--oversubscribe"};
  if (!trains) {
    words.insert(words.end(), {"sleep", "1000"});
    return words;
  }
  const test::ResumableRun run{.ranks = ranks, .stage = ranks % 4};
  words.insert(words.end(), {"train", "--output_dir", output.string(), "--overwrite_output_dir"});
  for (const std::string& word : run.arguments(1'000'000)) words.push_back(word);
  words.insert(words.end(), {"--save_steps", "0", "--per_device_train_batch_size",
                             fmt::format("{}", 12 / ranks)});
  return words;
}

enum class Victim { launcher, agent, rank };

/// Kills; what the launcher must say then.
void strike(Launch& launch, Victim victim, int rank, const std::string& program) {
  const pid_t pid = victim == Victim::rank    ? test::rank_pid(launch, rank, program)
                    : victim == Victim::agent ? launch.agent_pid()
                                              : 0;
  if (pid == 0) {  // or there is no other yet
    launch.signal(SIGKILL);
    CHECK(launch.wait() == 137);
    return;
  }
  ::kill(pid, SIGKILL);
  const int status = launch.wait();
  CAPTURE(launch.err());
  if (victim == Victim::rank) {
    CHECK(status == 137);
    CHECK_THAT(launch.err(),
               ContainsSubstring(fmt::format("error: rank {} on localhost (pid {}) was killed "
                                             "by SIGKILL",
                                             rank, pid)));
  } else {
    CHECK((status != 0 && status != -1));
    CHECK_THAT(launch.err(), ContainsSubstring("localhost") &&
                                 ContainsSubstring(fmt::format("(pid {}) was killed", pid)));
  }
}

}  // namespace

TEST_CASE("Storm: no process is left and the culprit is named", "[fault][storm]") {
  const test::TempDir folder;
  const unsigned seed = 20'261'121;
  std::mt19937 random(seed);
  for (int round = 0; round < test::count_from("DSTRAIN_STORM_ROUNDS", 24); ++round) {
    const int ranks = 1 + static_cast<int>(random() % 4);
    const bool trains = random() % 2 == 0;
    const auto victim = static_cast<Victim>(random() % 3);
    const int rank = static_cast<int>(random() % static_cast<unsigned>(ranks));
    CAPTURE(seed, round, ranks, trains, static_cast<int>(victim), rank);
    Launch launch(command(ranks, trains, folder.path() / "out"),
                  {.env = {{"OMP_NUM_THREADS", "1"}}, .directory = test::golden_folder.string()});
    test::wait_for_random_moment(launch.pid(), random, 250);
    strike(launch, victim, rank, trains ? "dstraind" : "sleep");
    REQUIRE(launch.nothing_left());
  }
}
