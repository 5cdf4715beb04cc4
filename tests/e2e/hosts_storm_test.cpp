// Kills at random moments, over several hosts. DSTRAIN_STORM sets the number of rounds.
#include <csignal>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "tests/e2e/fake_hosts.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;

namespace {

const std::string storm_family = "sleep 1001 & setsid sleep 1002 & (setsid sleep 1003 &) & ";
const std::string storm_obedient =
    "trap 'exit 75' TERM; " + storm_family + "while :; do sleep 0.05; done";
const std::string storm_deaf =
    "trap '' TERM INT HUP; " + storm_family + "while :; do sleep 0.05; done";

int storm_rounds() {
  return test::count_from("DSTRAIN_STORM", 15);
}

}  // namespace

TEST_CASE("Hosts: a storm of kills leaves no orphan", "[e2e]") {
  const unsigned seed = 20'261'122;
  std::mt19937 random(seed);
  const test::FakeHosts hosts("n0 slots=2\nlocalhost slots=1\nn1 slots=1\n");
  for (int round = 0; round < storm_rounds(); ++round) {
    CAPTURE(seed, round);
    Launch launch(hosts.shell(random() % 2 == 0 ? storm_obedient : storm_deaf));
    // A moment anywhere from the launcher's first instruction to ranks with all their children.
    test::wait_for_random_moment(launch.pid(), random, 100);
    const auto all = launch.processes();
    const pid_t victim =
        random() % 3 == 0 || all.empty() ? launch.pid() : all[random() % all.size()];
    kill(victim, SIGKILL);
    // What was no part of the launch itself may have been missed by nobody.
    if (!launch.nothing_left(0.5)) launch.signal(SIGKILL);
    REQUIRE(launch.nothing_left());
  }
}

TEST_CASE("Hosts: a storm finds the right culprit", "[e2e]") {
  const unsigned seed = 20'261'123;
  std::mt19937 random(seed);
  const test::FakeHosts hosts("n0 slots=2\nlocalhost slots=1\nn1 slots=1\n");
  const char* const names[] = {"n0", "n0", "localhost", "n1"};
  for (int round = 0; round < storm_rounds(); ++round) {
    CAPTURE(seed, round);
    // As soon as the culprit is gone, its peers end with 1, as ranks in a collective do.
    const std::string script =
        fmt::format("echo $RANK: $$ $PPID.; until test -e {0}/gone{1}; do sleep 0.01; done; exit 1",
                    hosts.folder().string(), round);
    Launch launch(hosts.shell(script));
    REQUIRE(launch.wait_for_output(".\n", 4));
    const auto rank = random() % 4;
    const bool agent = random() % 2 == 0;
    const std::string key = fmt::format("]: {}: ", rank);
    const char* place = launch.out().c_str() + launch.out().find(key) + key.size();
    char* after = nullptr;
    const long own = std::strtol(place, &after, 10);
    kill(static_cast<pid_t>(agent ? std::strtol(after, nullptr, 10) : own), SIGKILL);
    std::filesystem::create_directory(hosts.folder() / fmt::format("gone{}", round));
    CHECK(launch.wait() == (agent ? 1 : 137));
    CHECK_THAT(launch.err(),
               ContainsSubstring(agent ? fmt::format("the agent on {} is lost", names[rank])
                                       : fmt::format("rank {} on {} (pid {}) was killed by SIGKILL",
                                                     rank, names[rank], own)));
    REQUIRE(launch.nothing_left());
  }
}
