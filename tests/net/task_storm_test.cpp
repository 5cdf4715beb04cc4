// Kills at random moments of what srun, mpirun and mpiexec have started. DSTRAIN_TASK_STORM sets
// the number of rounds.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <fmt/format.h>

#include "tests/net/task_starters.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using test::TaskStarterUnderTest;

namespace {

namespace fs = std::filesystem;

const std::string family = "sleep 1001 & setsid sleep 1002 & (setsid sleep 1003 &) & ";
const std::string obedient = "trap 'exit 75' TERM; " + family + "while :; do sleep 0.05; done";
const std::string deaf = "trap '' TERM INT HUP; " + family + "while :; do sleep 0.05; done";

int rounds() {
  return test::count_from("DSTRAIN_TASK_STORM", 3);
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

pid_t parent_of(pid_t pid) {
  std::istringstream words(text_of(fmt::format("/proc/{}/stat", pid)));
  words.ignore(4096, ')');
  std::string state;
  pid_t parent = 0;
  words >> state >> parent;
  return parent;
}

bool is_rank(pid_t pid, int rank) {
  const std::string environment = '\0' + text_of(fmt::format("/proc/{}/environ", pid));
  return environment.find(fmt::format("{0}RANK={1}{0}", '\0', rank)) != environment.npos;
}

/// The process that the agent has started as this rank, as this machine numbers it.
pid_t find_rank(const Launch& launch, int rank) {
  for (const pid_t pid : launch.processes()) {
    if (is_rank(pid, rank) && !is_rank(parent_of(pid), rank)) return pid;
  }
  return 0;
}

}  // namespace

TEST_CASE("Task launch: a storm of kills leaves no orphan", "[net][tasks]") {
  const std::string launcher = test::any_task_launcher();
  const unsigned seed = 20'261'123;
  std::mt19937 random(seed);
  const TaskStarterUnderTest starter(launcher);
  for (int round = 0; round < rounds(); ++round) {
    CAPTURE(launcher, seed, round);
    Launch launch(starter.shell(random() % 2 == 0 ? obedient : deaf),
                  {.env = starter.environment(), .directory = ""});
    // A moment anywhere from the launcher's first instruction to ranks with all their children.
    test::wait_for_random_moment(launch.pid(), random, 1500);
    const auto all = launch.processes();
    const pid_t victim =
        random() % 3 == 0 || all.empty() ? launch.pid() : all[random() % all.size()];
    ::kill(victim, random() % 4 == 0 ? SIGTERM : SIGKILL);
    // What was no part of the launch itself may have been missed by nobody.
    if (!launch.nothing_left(5)) launch.signal(SIGKILL);
    REQUIRE(launch.nothing_left());
  }
}

TEST_CASE("Task launch: a storm finds the right culprit", "[net][tasks]") {
  const std::string launcher = test::any_task_launcher();
  const unsigned seed = 20'261'124;
  std::mt19937 random(seed);
  const TaskStarterUnderTest starter(launcher);
  const test::TempDir folder;
  for (int round = 0; round < rounds(); ++round) {
    CAPTURE(launcher, seed, round);
    // As soon as a rank is gone, its peers end with 1, as those in a collective do.
    const std::string script =
        fmt::format("echo here.; until test -e {}/gone{}; do sleep 0.01; done; exit 1",
                    folder.path().string(), round);
    Launch launch(starter.shell(script), {.env = starter.environment(), .directory = ""});
    REQUIRE(launch.wait_for_output("here.\n", 3));
    const int rank = static_cast<int>(random() % 3);
    const bool agent = random() % 2 == 0;
    const pid_t own = find_rank(launch, rank);
    REQUIRE(own != 0);
    ::kill(agent ? parent_of(own) : own, SIGKILL);
    if (!agent) fs::create_directory(folder.path() / fmt::format("gone{}", round));
    CHECK(launch.wait() == (agent ? 1 : 137));
    CHECK_THAT(launch.err(),
               agent ? ContainsSubstring("the agent on ") && ContainsSubstring(" is lost")
                     : ContainsSubstring(fmt::format("error: rank {} on ", rank)) &&
                           ContainsSubstring(" was killed by SIGKILL"));
    REQUIRE(launch.nothing_left());
  }
}
