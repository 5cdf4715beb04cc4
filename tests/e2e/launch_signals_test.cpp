#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/os/file.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using test::Launch;
using test::look_until;
using Words = std::vector<std::string>;
using test::shell_command;

namespace {

/// Ranks with children of every kind: in the group, in a session of their own, orphaned twice.
const std::string family =
    "sleep 1001 & setsid sleep 1002 & setsid sh -c 'sleep 1003 & sleep 1004 & exit' & "
    "(setsid sh -c 'sleep 1005 & exec sleep 1006' &) & ";

const std::string obedient =
    "trap 'exit 75' TERM; " + family + "echo ready; while :; do sleep 0.05; done";
const std::string deaf =
    "trap '' TERM INT HUP; " + family + "echo ready; while :; do sleep 0.05; done";

/// 0 once it has ended.
long bytes_written_by(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/io", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("wchar: ")) return std::atol(line.c_str() + 7);
  }
  return 0;
}

/// Whether the signal waits to be taken by the process.
bool is_pending(pid_t pid, int number) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("ShdPnd:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
  }
  return false;
}

}  // namespace

TEST_CASE("Signals: nothing survives the death of the launcher", "[e2e]") {
  const std::string script = GENERATE(obedient, deaf);
  Launch launch(shell_command(3, script));
  REQUIRE(launch.wait_for_output("ready", 3));
  CHECK(launch.processes().size() > 10);
  launch.signal(SIGKILL);
  CHECK(launch.wait_without_reading() == 137);
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: nothing survives the death of the agent", "[e2e]") {
  const int number = GENERATE(SIGKILL, SIGSEGV);
  const std::string script = GENERATE(obedient, deaf);
  CAPTURE(number);
  Launch launch(shell_command(3, script));
  REQUIRE(launch.wait_for_output("ready", 3));
  kill(launch.agent_pid(), number);
  CHECK(launch.wait() != 0);
  CHECK(launch.err().find("the agent on localhost") != std::string::npos);
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: nothing survives a killed launcher even if its agent is suspended", "[e2e]") {
  Launch launch(shell_command(2, GENERATE(obedient, deaf)));
  REQUIRE(launch.wait_for_output("ready", 2));
  kill(launch.agent_pid(), SIGSTOP);
  launch.signal(SIGKILL);
  CHECK(launch.wait_without_reading() == 137);
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: a killed agent is named while ranks write to it", "[e2e]") {
  // Its pipes close before the ranks are ended: they may meet SIGPIPE first.
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    // One that writes itself, or a shell that tells how its writer ended.
    Launch launch(
        shell_command(2, round % 2 == 0 ? "echo ready; exec yes" : "echo ready; yes; exit $?"));
    REQUIRE(launch.wait_for_output("ready", 2));
    const pid_t agent = launch.agent_pid();
    kill(agent, SIGKILL);
    CHECK(launch.wait() == 1);
    CHECK(launch.err().find(fmt::format("(pid {}) was killed by SIGKILL", agent)) !=
          std::string::npos);
    CHECK(launch.nothing_left());
  }
}

TEST_CASE("Signals: a failed rank takes the others with it", "[e2e]") {
  Launch launch(shell_command(3, deaf.substr(0, deaf.find("echo ready")) +
                                     "echo ready $RANK $$.; while :; do sleep 0.05; done"));
  REQUIRE(launch.wait_for_output("ready", 3));
  const std::size_t at = launch.out().find("ready 1 ") + 8;
  kill(std::atoi(launch.out().c_str() + at), SIGKILL);
  CHECK(launch.wait() == 137);
  CHECK(launch.err().find("rank 1 on localhost") != std::string::npos);
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: after one Ctrl-C the ranks may save", "[e2e]") {
  const int number = GENERATE(SIGINT, SIGTERM, SIGHUP);
  CAPTURE(number);
  Launch saves(shell_command(2, obedient));
  REQUIRE(saves.wait_for_output("ready", 2));
  saves.signal(number);
  CHECK(saves.wait() == 75);
  CHECK(saves.nothing_left());

  Launch does_not(shell_command(2, "echo ready; exec sleep 1000"));
  REQUIRE(does_not.wait_for_output("ready", 2));
  does_not.signal(number);
  CHECK(does_not.wait() == 128 + number);
  CHECK(does_not.nothing_left());
}

TEST_CASE("Signals: all processes of a job may be asked to stop at once", "[e2e]") {
  using From = Launch::From;
  const auto [number, from] = GENERATE(table<int, From>({{SIGINT, From::last},
                                                         {SIGTERM, From::first},
                                                         {SIGHUP, From::last},
                                                         {SIGUSR1, From::first}}));
  CAPTURE(number);
  // What takes longer than the second that a second request leaves.
  Launch launch(shell_command(2,
                              "trap 'sleep 1.5; exit 75' INT TERM HUP USR1; echo ready; "
                              "while :; do sleep 0.05; done"));
  REQUIRE(launch.wait_for_output("ready", 2));
  launch.signal_all(number, from);
  CHECK(launch.wait() == 75);
  CAPTURE(launch.err());
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: a stop signal to the agent stops the job", "[e2e]") {
  const int number = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGUSR1);
  CAPTURE(number);
  Launch saves(shell_command(2, obedient));
  REQUIRE(saves.wait_for_output("ready", 2));
  kill(saves.agent_pid(), number);
  CHECK(saves.wait() == 75);
  CHECK(saves.err().find("asked") == std::string::npos);
  CHECK(saves.nothing_left());

  Words words = shell_command(2, deaf);
  words.insert(words.begin(), {"--grace", "0.2"});
  Launch does_not(words);
  REQUIRE(does_not.wait_for_output("ready", 2));
  kill(does_not.agent_pid(), number);
  CHECK(does_not.wait() == 128 + number);
  CHECK(does_not.err().find(" on localhost asked the job to stop") != std::string::npos);
  CHECK(does_not.nothing_left());
}

TEST_CASE("Signals: a job that ignores SIGHUP outlives its terminal", "[e2e]") {
  const test::TempDir directory;
  Launch::Options options;
  options.directory = directory.path().string();
  options.wrapper = {"sh", "-c", "trap '' HUP; exec \"$@\"", "sh"};
  Launch launch(
      shell_command(1, "trap 'exit 9' TERM; echo ready; until test -e go; do sleep 0.05; done"),
      options);
  REQUIRE(launch.wait_for_output("ready"));
  CHECK(getsid(launch.agent_pid()) == launch.agent_pid());  // a Ctrl-C there is not for it
  launch.signal(SIGHUP);
  // Taken, if it is taken at all.
  REQUIRE(look_until(launch.pid(), [&] { return !is_pending(launch.pid(), SIGHUP); }));
  write_text_file(directory.path() / "go", "");
  CHECK(launch.wait() == 0);
}

// Supervisors and interpreters hand such dispositions and masks down.
TEST_CASE("Signals: an ignored SIGCHLD and blocked signals are not inherited", "[e2e]") {
  Launch::Options options;
  options.wrapper = {"env", "--ignore-signal=CHLD,TERM,INT,PIPE,QUIT,USR1", "--block-signal"};
  Launch launch(shell_command(1, "grep -E 'Sig(Blk|Ign)' /proc/self/status; exit 7"), options);
  CHECK(launch.wait_for_output("SigBlk:\t0000000000000000"));
  CHECK(launch.wait_for_output("SigIgn:\t0000000000000000"));
  CHECK(launch.wait() == 7);
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: ranks stop though their starter ignored the request", "[e2e]") {
  Launch::Options options;
  options.wrapper = {"env", "--ignore-signal=TERM", "--block-signal=TERM"};
  Launch launch(shell_command(2, obedient), options);
  REQUIRE(launch.wait_for_output("ready", 2));
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 75);
}

TEST_CASE("Signals: ranks that ignore the signal are killed after the grace", "[e2e]") {
  Words words = shell_command(2, deaf);
  words.insert(words.begin(), {"--grace", "0.2"});
  Launch launch(words);
  REQUIRE(launch.wait_for_output("ready", 2));
  launch.signal(SIGINT);
  CHECK(launch.wait() == 130);
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: after a second Ctrl-C ranks that ignore it are killed soon", "[e2e]") {
  Launch launch(shell_command(2, deaf));
  REQUIRE(launch.wait_for_output("ready", 2));
  REQUIRE(launch.interrupt_until_gone());
  CHECK(launch.wait() == 130);
}

TEST_CASE("Signals: a signal after the end does not change the status", "[e2e]") {
  const int rounds = test::count_from("DSTRAIN_STORM", 3);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    Launch launch(shell_command(1, "trap 'exit 75' TERM; echo ready; while :; do :; done"));
    REQUIRE(launch.wait_for_output("ready"));
    // The last of so many comes when nothing is left that waits for it.
    while (!launch.has_ended()) launch.signal(SIGINT);
    const int status = launch.wait_without_reading();
    CHECK((status == 75 || status == 130));
    CHECK_FALSE(launch.was_killed());
  }
}

TEST_CASE("Signals: suspended ranks end too", "[e2e]") {
  Launch launch(shell_command(2, "echo ready; kill -STOP $$; sleep 1000"));
  REQUIRE(launch.wait_for_output("ready", 2));
  launch.signal(SIGINT);
  CHECK(launch.wait() == 130);
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: a suspended agent is abandoned", "[e2e]") {
  Launch launch(shell_command(2, deaf));
  REQUIRE(launch.wait_for_output("ready", 2));
  kill(launch.agent_pid(), SIGSTOP);
  REQUIRE(launch.interrupt_until_gone());
  CHECK(launch.wait() == 130);
}

TEST_CASE("Signals: unread output does not delay a stop", "[e2e]") {
  Launch launch(shell_command(2, "echo ready; exec yes"));
  REQUIRE(launch.wait_for_output("ready", 1));
  REQUIRE(launch.interrupt_until_gone());
  CHECK(launch.wait_without_reading() == 130);
}

TEST_CASE("Signals: unread output blocks the ranks that write it", "[e2e]") {
  const test::TempDir directory;
  Launch::Options options;
  options.directory = directory.path().string();
  Launch launch(shell_command(1, "echo $$ >new; mv new pid; exec head -c 100000000 /dev/zero"),
                options);
  REQUIRE(
      look_until(launch.pid(), [&] { return std::filesystem::exists(directory.path() / "pid"); }));
  const std::string pid = read_text_file(directory.path() / "pid", mebibyte);
  // Until it stands still for a while.
  long written = 0;
  int still = 0;
  REQUIRE(look_until(launch.pid(), [&] {
    const long now = bytes_written_by(std::atoi(pid.c_str()));
    still = now == written && now > 0 ? still + 1 : 0;
    written = now;
    return still == 40;
  }));
  CHECK(written < 20'000'000);
  launch.signal(SIGINT);  // once: then what nobody takes is given up before long
  CHECK(launch.wait_without_reading() == 130);
}

TEST_CASE("Signals: unread final output can be abandoned", "[e2e]") {
  const test::TempDir directory;
  Launch::Options options;
  options.directory = directory.path().string();
  Launch launch(shell_command(1, "head -c 500000 /dev/zero; touch done"), options);
  REQUIRE(look_until(launch.pid(), [&] {
    return std::filesystem::exists(directory.path() / "done") && launch.processes().size() == 1;
  }));
  REQUIRE(launch.interrupt_until_gone());
  CHECK(launch.wait_without_reading() != -1);
}

TEST_CASE("Signals: a crash is seen while nobody reads", "[e2e]") {
  Launch launch(
      shell_command(2,
                    "if [ $RANK = 0 ]; then echo ready; exec yes; fi; read x < /dev/zero & "
                    "sleep 0.5; exit 7"));
  REQUIRE(launch.wait_for_output("ready", 1));
  // The other rank is stopped although the launcher's own output is stuck.
  CHECK(test::wait_until_none([&] {
    std::vector<pid_t> others = launch.processes();
    std::erase(others, launch.pid());
    return others;
  }));
  CHECK(launch.wait() == 7);
}

TEST_CASE("Signals: processes that ranks leave behind are ended and reported", "[e2e]") {
  Launch launch({"--num_gpus", "2", "sh", "-c", "trap '' TERM; setsid sleep 1000 & exit 0"});
  CHECK(launch.wait() == 0);
  CHECK(launch.err().find("ending processes they left running") != std::string::npos);
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: children from before the launch are not touched", "[e2e]") {
  // A shell that becomes the launcher hands it a child, and an orphan of another child later on.
  // The ranks end the agent once the launcher knows that they run.
  const test::TempDir directory;
  Launch::Options options;
  options.directory = directory.path().string();
  const std::string script = fmt::format(
      "(sleep 1000 & echo $! > first; "
      " (sleep 0.2; sleep 1001 & echo $! > new; mv new second) & "
      " exec {0} -q --num_gpus 2 sh -c 'until test -e second && {0} status $DSTRAIN_JOB | "
      "grep -q \"sh, running\"; do sleep 0.05; done; "
      "setsid sleep 1002 & echo $! >> third; kill -9 $PPID; sleep 1000'); "
      "echo status $?; kill -0 $(cat first) && kill -0 $(cat second) && echo alive; "
      "kill -0 $(head -n 1 third) || echo gone; kill $(cat first) $(cat second)",
      DSTRAIN_PROGRAM);
  Launch launch({"-q", "sh", "-c", script}, options);
  CHECK(launch.wait() == 0);
  CHECK(launch.out() == "status 1\nalive\ngone\n");
  CHECK(launch.nothing_left());
}

TEST_CASE("Signals: a storm of kills leaves no orphan", "[e2e]") {
  const int rounds = test::count_from("DSTRAIN_STORM", 20);
  const unsigned seed = 20'261'121;
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(seed, round);
    const int ranks = 1 + static_cast<int>(random() % 4);
    Launch launch(shell_command(ranks, random() % 2 == 0 ? obedient : deaf));
    // A moment anywhere from the launcher's first instruction to ranks with all their children.
    test::wait_for_random_moment(launch.pid(), random, 80);
    const auto victim = random() % 3;
    const pid_t agent = launch.agent_pid();
    if (victim == 1 && agent > 0) {
      kill(agent, SIGKILL);
      CHECK(launch.wait() != 0);
    } else if (victim == 2) {
      const auto all = launch.processes();
      if (!all.empty()) kill(all[random() % all.size()], SIGKILL);
      if (launch.nothing_left(0.3)) continue;
      launch.signal(SIGKILL);
    } else {
      launch.signal(SIGKILL);
    }
    REQUIRE(launch.nothing_left());
  }
}
