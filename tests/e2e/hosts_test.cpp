// One launch over several hosts, through a program in place of ssh.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/deadline.h"
#include "runtime/os/file.h"
#include "tests/e2e/fake_hosts.h"
#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace dstrain;
using test::FakeHosts;
using test::Launch;
using Words = std::vector<std::string>;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Ranks with children of every kind: in the group, in a session of their own, orphaned.
const std::string family = "sleep 1001 & setsid sleep 1002 & (setsid sleep 1003 &) & ";
const std::string deaf =
    "trap '' TERM INT HUP; " + family + "echo ready; while :; do sleep 0.05; done";
const std::string obedient =
    "trap 'exit 75' TERM; " + family + "echo ready; while :; do sleep 0.05; done";

/// Seconds of silence after which a host is gone: less than ranks sleep here, and more than a busy
/// machine keeps a process from its beats.
constexpr const char* silence = "4";

int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("Hosts: each rank gets its identity", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nlocalhost slots=2\n# none\nn1 slots=3 max_slots=4\n");
  Launch launch(hosts.words({"-i", "n0@localhost@n1:0,2", "sh", "-c",
                             "echo $RANK/$LOCAL_RANK/$WORLD_SIZE/$LOCAL_WORLD_SIZE/$CROSS_RANK/"
                             "$CROSS_SIZE/$MASTER_ADDR/${#DSTRAIN_TOKEN}"}));
  CHECK(launch.wait() == 0);
  const char* const expected[] = {"0/0/5/1/0/3", "1/0/5/2/1/3", "2/1/5/2/1/3", "3/0/5/2/2/3",
                                  "4/1/5/2/2/3"};
  for (int rank = 0; rank < 5; ++rank) {
    CHECK_THAT(launch.out(), ContainsSubstring(fmt::format("[rank {}]: {}/127.0.0.1/64\n", rank,
                                                           expected[rank])));
  }
  CHECK(launch.err().empty());
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: place and environment and arguments travel byte for byte", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nn1 slots=1\n");
  const test::TempDir directory;
  const std::string here = (directory.path() / "a b'\"$(x)\n").string();
  std::filesystem::create_directories(here);
  const std::string hostile = "$(touch x)`id`'\"\\\n\xff ;&|<>*?!";
  Launch::Options options;
  options.directory = here;
  options.env = {{"NCCL_X", hostile}, {"PYTHONX", "p"}, {"MINE", "stays"}, {"FOR_SH", "1"}};
  const std::string output = (directory.path() / "out").string();
  Launch launch(hosts.words({"--env", "TYPED=" + hostile, "--env", "FOR_SH", "sh", "-c",
                             "printf '%s\\0' \"$PWD\" \"$NCCL_X\" \"$TYPED\" \"$PYTHONX\" "
                             "\"$FOR_SH\" \"${MINE-none}\" \"$@\" > \"$0.$RANK\"",
                             output, hostile, "", "--"}),
                options);
  CHECK(launch.wait() == 0);
  std::string expected;
  for (const std::string& word : {here, hostile, hostile, std::string("p"), std::string("1"),
                                  std::string("none"), hostile, std::string(), std::string("--")}) {
    expected += word + '\0';
  }
  for (const char* rank : {".0", ".1"}) CHECK((test::read_bytes(output + rank) == expected));
}

namespace {

void check_comes_up(const std::string& shell) {
  const FakeHosts hosts(shell + "0 slots=1\n");
  // A program whose path needs quoting; the daemon is not needed.
  const std::filesystem::path odd = hosts.folder() / "o d'd\"$x`y`*\\";
  std::filesystem::create_directories(odd);
  const std::filesystem::path program = test::copy_program(odd);
  Words words{"sh", "-c", "exec \"$@\"", "sh", program.string()};
  for (const std::string& word : hosts.shell("echo up")) words.push_back(word);
  words.insert(words.begin(), "-q");
  Launch launch(words);
  CHECK(launch.wait() == 0);
  CHECK(launch.out() == "up\n");
}

}  // namespace

TEST_CASE("Hosts: every remote shell brings up the agent", "[e2e]") {
  check_comes_up(GENERATE("bash", "n"));
}

TEST_CASE("Hosts: zsh brings up the agent", "[e2e]") {
  if (!std::filesystem::exists("/usr/bin/zsh")) test::skip("there is no /usr/bin/zsh");
  check_comes_up("zsh");
}

TEST_CASE("Hosts: the first failure is named with its host", "[e2e]") {
  const FakeHosts hosts("n0 slots=2\nn1 slots=2\n");
  Launch exits(hosts.shell("test $RANK != 2 || { echo last words; exit 7; }; exec sleep 1000"));
  CHECK(exits.wait() == 7);
  CHECK_THAT(exits.err(), ContainsSubstring("rank 2 on n1 (pid ") &&
                              ContainsSubstring("ended with status 7") &&
                              ContainsSubstring("    last words\n"));
  CHECK(exits.nothing_left());
  Launch killed(hosts.shell("test $RANK != 3 || kill -SEGV $$; exec sleep 1000"));
  CHECK(killed.wait() == 139);
  CHECK_THAT(killed.err(),
             ContainsSubstring("rank 3 on n1 (pid ") && ContainsSubstring("was killed by SIGSEGV"));
  CHECK(killed.nothing_left());
}

TEST_CASE("Hosts: something missing on a host is reported with the host", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nn1 slots=1\n");
  const test::TempDir directory;
  Launch::Options options;
  options.directory = directory.path().string();
  Words words = hosts.words({"--venv_script", "none", "true"});
  Launch launch(words, options);
  CHECK(launch.wait() == 3);
  CHECK_THAT(launch.err(),
             ContainsSubstring("cannot start rank") && ContainsSubstring("--venv_script"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: a script is sourced before the program", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nlocalhost slots=1\n");
  const std::string script = (hosts.folder() / "an 'odd' name").string();
  write_text_file(script, "SOURCED=\"by $RANK\"; export SOURCED\n");
  Launch launch(hosts.words(
      {"--venv_script", script, "sh", "-c", "echo $SOURCED: \"$@\"", "sh", "a  b", "$x"}));
  CHECK(launch.wait() == 0);
  CHECK_THAT(launch.out(), ContainsSubstring("[rank 0]: by 0: a  b $x\n") &&
                               ContainsSubstring("[rank 1]: by 1: a  b $x\n"));
}

TEST_CASE("Hosts: log files are kept on the node", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nn1 slots=1\n");
  const std::string logs = (hosts.folder() / "logs").string();
  Launch launch(hosts.words({"--enable_each_rank_log", logs, "sh", "-c",
                             "echo from $RANK; test $RANK = 0 || exit 7; exec sleep 1000"}));
  CHECK(launch.wait() == 7);
  const std::size_t at = launch.err().find("  log file: n1:" + logs);
  REQUIRE(at != std::string::npos);
  const std::string path = launch.err().substr(at + 15, launch.err().find('\n', at + 1) - at - 15);
  CHECK(test::read_bytes(path) == "from 1\n");
}

TEST_CASE("Hosts: output before the agent starts is not mistaken for messages", "[e2e]") {
  const FakeHosts hosts("noisy0 slots=1\nnoisy1 slots=1\n");
  Launch quiet(hosts.shell("echo from $RANK"));
  CHECK(quiet.wait() == 0);
  CHECK(quiet.out().find("Welcome") == std::string::npos);
  CHECK(quiet.err().empty());
  Launch loud(hosts.words({"--log_level", "debug", "true"}));
  CHECK(loud.wait() == 0);
  CHECK_THAT(
      loud.err(),
      ContainsSubstring("noisy0 printed before its agent started: Welcome to noisy0 no line end"));
}

TEST_CASE("Hosts: all that do not come up are named", "[e2e]") {
  const FakeHosts hosts(
      "n0 slots=1\nrefuse slots=1\nold slots=1\nabsent slots=1\nflood slots=1\ngarbage slots=1\n"
      "n1 slots=1\nlocalhost slots=1\nstall slots=1\n");
  // A busy machine may not bring up the good ones in the first seconds.
  for (int seconds = 2, lines = 0; lines != 6; seconds *= 4) {
    REQUIRE(seconds < test::hang_seconds);
    Launch launch(hosts.words({"--timeout", std::to_string(seconds), "sh", "-c", "echo ran"}));
    CHECK(launch.wait() == 3);
    CHECK(launch.out().empty());
    CHECK_THAT(launch.err(),
               ContainsSubstring(fmt::format("host stall: did not answer within {} s", seconds)));
    CHECK(launch.nothing_left());
    lines = lines_in(launch.err());
    if (lines != 6) continue;
    for (const char* part : {"host refuse: ", "connect to host refuse: Connection refused",
                             "host old: ", "its dstrain is version 0.0", "--copy_binary",
                             "host absent: no executable dstrain there",
                             "host flood: printed more than 1024 KiB", "host garbage: "}) {
      CHECK_THAT(launch.err(), ContainsSubstring(part));
    }
  }
}

TEST_CASE("Hosts: the dstrain on PATH serves where the path has none", "[e2e]") {
  const FakeHosts hosts("path0 slots=1\n");
  Launch::Options options;
  options.env = {{"DSTRAIN_TEST_PROGRAM", DSTRAIN_PROGRAM}};
  Launch launch(hosts.shell("echo up"), options);
  CHECK(launch.wait() == 0);
  CHECK(launch.out() == "up\n");
}

TEST_CASE("Hosts: Ctrl-C while hosts are coming up leaves nothing", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nstall slots=1\nlocalhost slots=1\n");
  Launch launch(hosts.shell("echo ran"));
  REQUIRE(launch.wait_until([&] { return launch.processes().size() >= 4; }));
  launch.signal(SIGINT);
  CHECK(launch.wait() == 130);
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: after one Ctrl-C the ranks of all hosts may save", "[e2e]") {
  const FakeHosts hosts("n0 slots=2\nlocalhost slots=1\nn1 slots=1\n");
  Launch launch(hosts.shell(obedient));
  REQUIRE(launch.wait_for_output("ready", 4));
  launch.signal(SIGINT);
  CHECK(launch.wait() == 75);
  CHECK(launch.nothing_left());
  Launch not_listening(hosts.shell(deaf));
  REQUIRE(not_listening.wait_for_output("ready", 4));
  REQUIRE(not_listening.interrupt_until_gone());
  CHECK(not_listening.wait() == 130);
}

TEST_CASE("Hosts: all processes of a job may be asked to stop at once", "[e2e]") {
  const FakeHosts hosts("n0 slots=2\nlocalhost slots=1\nn1 slots=1\n");
  using From = Launch::From;
  const auto [number, from] =
      GENERATE(table<int, From>({{SIGTERM, From::first}, {SIGHUP, From::last}}));
  Launch launch(
      hosts.shell("trap 'sleep 1.5; exit 75' INT TERM HUP USR1; echo ready; "
                  "while :; do sleep 0.05; done"));
  REQUIRE(launch.wait_for_output("ready", 4));
  launch.signal_all(number, from);
  CHECK(launch.wait() == 75);
  CAPTURE(launch.err());
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: nothing survives the death of the launcher", "[e2e]") {
  const FakeHosts hosts("n0 slots=2\nlocalhost slots=1\nn1 slots=1\ncut0 slots=1\n");
  Launch launch(hosts.shell(GENERATE(obedient, deaf)));
  REQUIRE(launch.wait_for_output("ready", 5));
  launch.signal(SIGKILL);
  CHECK(launch.wait_without_reading() == 137);
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: nothing survives a killed launcher even if all others are suspended", "[e2e]") {
  const FakeHosts hosts("n0 slots=2\nlocalhost slots=1\n");
  Launch launch(hosts.shell(deaf));
  REQUIRE(launch.wait_for_output("ready", 3));
  int stopped = 0;
  for (const pid_t pid : launch.processes()) {
    const std::string name = test::read_bytes(fmt::format("/proc/{}/comm", pid));
    if (pid == launch.pid() || !name.starts_with("dstrain")) continue;
    kill(pid, SIGSTOP);
    ++stopped;
  }
  CHECK(stopped == 4);  // the relay, two agents and a guard
  launch.signal(SIGKILL);
  CHECK(launch.wait_without_reading() == 137);
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: a job suspended for longer than the silence limit continues", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nlocalhost slots=1\nn1 slots=1\n");
  Launch::Options options;
  options.env = {{"DSTRAIN_SILENCE", silence}};
  const std::filesystem::path end = hosts.folder() / "end";
  Launch launch(hosts.shell("echo ready; while [ ! -e " + end.string() + " ]; do sleep 0.1; done"),
                options);
  REQUIRE(launch.wait_for_output("ready", 3));
  const std::vector<pid_t> processes = launch.processes();
  // Twice: a guard lets its agent go on until it is stopped itself.
  for (int round = 0; round < 2; ++round) {
    for (const pid_t pid : processes) kill(pid, SIGSTOP);
  }
  const Deadline suspended = Deadline::after(1.5 * std::stod(silence));
  launch.wait_until([&] { return suspended.passed(); });
  for (const pid_t pid : processes) kill(pid, SIGCONT);
  const Deadline going_on = Deadline::after(1);
  launch.wait_until([&] { return going_on.passed(); });
  std::ofstream(end) << "";
  CHECK(launch.wait() == 0);
  CAPTURE(launch.err());
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: a launcher that was suspended waits for its hosts as long as it would", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\n");
  hosts.set("n0", "slow", true);
  std::vector<std::string> words = hosts.shell("echo ready");
  words.insert(words.begin(), {"--timeout", "4"});
  Launch launch(words);
  REQUIRE(launch.wait_until([&] { return launch.processes().size() > 2; }));
  test::suspend(launch.pid(), 10);
  hosts.set("n0", "slow", false);
  CHECK(launch.wait() == 0);
  CHECK(launch.out() == "ready\n");
  CAPTURE(launch.err());
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: a lost agent is named and ends the job", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nlocalhost slots=1\nn1 slots=1\n");
  Launch told(hosts.shell("echo agent $RANK $PPID.; " + deaf));
  REQUIRE(told.wait_for_output("ready", 3));
  const int victim = GENERATE(0, 1, 2);
  const std::string key = fmt::format("agent {} ", victim);
  kill(std::atoi(told.out().c_str() + told.out().find(key) + key.size()), SIGKILL);
  CHECK(told.wait() == 1);
  const char* const names[] = {"n0", "localhost", "n1"};
  CHECK_THAT(told.err(),
             ContainsSubstring(fmt::format("the agent on {} is lost", names[victim])) &&
                 (ContainsSubstring("was killed by SIGKILL") || ContainsSubstring("status 137")));
  CHECK(told.nothing_left());
}

TEST_CASE("Hosts: a connection that is cut ends the job on both sides", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\ncut0 slots=1\n");
  Launch launch(hosts.shell(deaf));
  REQUIRE(launch.wait_for_output("ready", 2));
  kill(hosts.network(GENERATE("to", "from"), "cut0"), SIGKILL);
  CHECK(launch.wait() == 1);
  CHECK_THAT(launch.err(), ContainsSubstring("the agent on cut0 is lost"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Hosts: a silent host counts as lost on both sides", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\ncut0 slots=1\n");
  Launch::Options options;
  options.env = {{"DSTRAIN_SILENCE", silence}};
  Launch launch(hosts.shell(deaf), options);
  REQUIRE(launch.wait_for_output("ready", 2));
  const pid_t network = hosts.network(GENERATE("to", "from"), "cut0");
  kill(network, SIGSTOP);
  CHECK(launch.wait() == 1);
  CHECK_THAT(launch.err(), ContainsSubstring("the agent on cut0 is lost"));
  // Of what we started only the stopped network itself may be left.
  CHECK(test::wait_until_none([&] {
    std::vector<pid_t> others = launch.processes();
    std::erase(others, network);
    return others;
  }));
}

TEST_CASE("Hosts: an invalid DSTRAIN_SILENCE is refused", "[e2e]") {
  const char* const typed = GENERATE("30abc", "abc", "", " 30", "0x10", "nan", "0", "86401");
  CAPTURE(typed);
  const test::Outcome outcome = test::run_command(
      {"--", "sh", "-c", "exit 0"}, {.env = {{"DSTRAIN_SILENCE", typed}}, .directory = {}});
  CHECK(outcome.status == 2);
  CHECK_THAT(
      outcome.err,
      ContainsSubstring("environment variable DSTRAIN_SILENCE: must be 0.1..86400 seconds, got \"" +
                        std::string(typed) + "\""));
}

TEST_CASE("Hosts: a suspended agent continues", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\n");
  Launch::Options options;
  options.env = {{"DSTRAIN_SILENCE", silence}};
  Launch launch(hosts.shell("kill -STOP $PPID; sleep 6; echo done"), options);
  CHECK(launch.wait() == 0);
  CHECK(launch.out() == "done\n");
}

TEST_CASE("Hosts: a suspended launcher stops no rank", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nlocalhost slots=1\n");
  Launch::Options options;
  options.env = {{"DSTRAIN_SILENCE", silence}};
  const std::string done = (hosts.folder() / "done").string();
  Launch launch(hosts.shell("echo ready; sleep 6; echo $RANK >> " + done), options);
  REQUIRE(launch.wait_for_output("ready", 2));
  launch.signal(SIGSTOP);
  CHECK(launch.wait_until(
      [&] { return std::filesystem::exists(done) && test::read_bytes(done).size() == 4; }));
  launch.signal(SIGCONT);
  CHECK(launch.wait() == 0);
}

TEST_CASE("Hosts: nodes that are started without ssh make one job", "[e2e]") {
  Launch::Options options;
  options.env = {{"DSTRAIN_TOKEN", "shared"}};
  const auto node = [](int rank) {
    return Words{"-q",
                 "--no_ssh",
                 "--num_nodes",
                 "2",
                 "--node_rank",
                 std::to_string(rank),
                 "--num_gpus",
                 "2",
                 "--master_addr",
                 "127.0.0.1",
                 "--master_port",
                 "29871",
                 "sh",
                 "-c",
                 "echo $RANK/$LOCAL_RANK/$WORLD_SIZE/$CROSS_RANK/$CROSS_SIZE/$MASTER_PORT/"
                 "$DSTRAIN_TOKEN"};
  };
  Launch first(node(0), options);
  Launch second(node(1), options);
  CHECK(first.wait() == 0);
  CHECK(second.wait() == 0);
  CHECK_THAT(first.out(), ContainsSubstring("[rank 1]: 1/1/4/0/2/29871/shared\n"));
  CHECK_THAT(second.out(), ContainsSubstring("[rank 2]: 2/0/4/1/2/29871/shared\n"));
}

TEST_CASE("Hosts: a dry run contacts no host", "[e2e]") {
  const FakeHosts hosts("w0 slots=4\nw1 slots=2\n");
  const Words words{"-H",
                    (hosts.folder() / "hosts").string(),
                    "-e",
                    "w0:2",
                    "--ssh_command",
                    "/nonexistent",
                    "--dry_run",
                    "train.sh",
                    "a b"};
  Launch launch(words);
  CHECK(launch.wait() == 3);  // the program is looked for here
  Words shell(words.begin(), words.end() - 2);
  shell.insert(shell.end(), {"sh", "-c", "exit 1"});
  Launch shown(shell);
  CHECK(shown.wait() == 0);
  const auto json = nlohmann::json::parse(shown.out());
  CHECK(json["launcher"] == "ssh");
  CHECK(json["world_size"] == 5);
  CHECK(json["master_addr"] == "w0");
  CHECK(json["master_port"] == 29500);
  CHECK(json["hosts"][0] ==
        nlohmann::json({{"host", "w0"}, {"slots", {0, 1, 3}}, {"ranks", {0, 1, 2}}}));
  CHECK(json["commands"].size() == 5);
}
