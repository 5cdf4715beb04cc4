// A rank that stops, spins or sleeps in I/O is named with what it was in, and nobody is named
// without need.
#include <algorithm>
#include <csignal>
#include <ctime>
#include <fstream>
#include <regex>

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "runtime/os/file.h"
#include "runtime/rank/worker_env.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;

namespace {

namespace fs = std::filesystem;

/// A run without an end whose hangs are told after `hang_seconds`, twenty times as long where it
/// saves.
struct WatchedRun {
  test::TempDir folder;
  std::vector<launcher::EnvVar> environment;

  explicit WatchedRun(const std::string& hang_seconds, std::vector<launcher::EnvVar> faults = {})
      : environment{{"DSTRAIN_HANG", hang_seconds},
                    {"XDG_RUNTIME_DIR", folder.path().string()},
                    {"OMP_NUM_THREADS", "1"}} {
    if (!faults.empty()) environment.push_back({"LD_PRELOAD", DSTRAIN_FAULT_LIBRARY});
    environment.insert(environment.end(), faults.begin(), faults.end());
  }
  [[nodiscard]] Launch::Options options() const {
    return {.env = environment, .directory = test::golden_folder.string()};
  }
  [[nodiscard]] fs::path output() const { return folder.path() / "out"; }
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& extra) const {
    return test::ResumableRun{.ranks = 2, .stage = 3}.endless(output(), extra);
  }
  [[nodiscard]] Launch start(const std::vector<std::string>& extra = {}) const {
    return Launch(command(extra), options());
  }
  /// Of a running job.
  /// Empty before there is such a job.
  [[nodiscard]] nlohmann::json status(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"status", output().string(), "--json"});
    const test::Outcome outcome = test::run_command(more, options());
    return outcome.status == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json::object();
  }
};

/// Some 28 MB of checkpoint a rank.
const std::vector<std::string> wide_model{
    "--config_overrides", "n_layer=6,n_embd=256,n_head=4,vocab_size=160,n_positions=32"};

constexpr const char* hang_warning = "no rank has made progress";

/// Where a signal stops a rank is chance: before the collective that the other is in, or in it.
bool names_rank_1(const std::string& text) {
  return text.find("rank 1 is missing in collective") != text.npos ||
         text.find("rank 1 is stopped in collective") != text.npos;
}

/// Steps that are in metrics.jsonl.
std::ptrdiff_t steps_in(const fs::path& output) {
  std::ifstream lines(output / "metrics.jsonl");
  return std::count(std::istreambuf_iterator<char>(lines), {}, '\n');
}

}  // namespace

TEST_CASE("Hang: a suspended rank is named with stacks and its return is reported", "[fault]") {
  const WatchedRun run("0.3");
  Launch launch = run.start();
  REQUIRE(launch.wait_for_output("step 100/"));
  const pid_t pid = run.status().at("ranks").at(1).at("pid").get<pid_t>();
  ::kill(pid, SIGSTOP);
  REQUIRE(launch.wait_for_error("stacks of rank"));
  CHECK(names_rank_1(launch.err()));
  CHECK_THAT(launch.err(), ContainsSubstring(fmt::format("pid {}), stopped: step ", pid)));
  CHECK_THAT(launch.err(), ContainsSubstring("rank 0, "));
  // On demand too, and the rank stays stopped.
  const nlohmann::json stacks = run.status({"--stacks"});
  CHECK(names_rank_1(stacks.at("where").dump()));
  CHECK(stacks.at("stacks").size() == 2);
  CHECK_THAT(stacks.at("stacks").dump(),
             ContainsSubstring("dstrain::session::Trainer::take_steps"));
  ::kill(pid, SIGCONT);
  CHECK(launch.wait_for_error("the job makes progress again"));
}

TEST_CASE("Hang: a suspended agent is named if stacks are requested", "[fault]") {
  const WatchedRun run("30");
  Launch launch = run.start();
  REQUIRE(launch.wait_for_output("step 100/"));
  const pid_t agent = launch.agent_pid();
  ::kill(agent, SIGSTOP);
  const nlohmann::json stacks = run.status({"--stacks"});
  CHECK(stacks.at("stacks").empty());
  REQUIRE_FALSE(stacks.at("where").empty());
  const std::string where = stacks.at("where").back();
  CHECK_THAT(where,
             Catch::Matchers::StartsWith("host localhost (ranks 0 1) has sent nothing for "));
  CHECK_THAT(where, Catch::Matchers::EndsWith(
                        fmt::format(" s: its agent, pid {}, may be stopped", agent)));
  const test::Outcome text =
      test::run_command({"status", run.output().string(), "--stacks"}, run.options());
  CHECK_THAT(text.out, ContainsSubstring("  the agent on localhost has not answered\n"));
  ::kill(agent, SIGCONT);
  CHECK(launch.wait_until([&] { return run.status({"--stacks"}).at("stacks").size() == 2; }));
}

TEST_CASE("Hang: the job does not wait for a checkpoint while the agent is suspended", "[fault]") {
  const WatchedRun run("30");
  Launch launch = run.start();
  REQUIRE(launch.wait_for_output("step 100/"));
  const pid_t agent = launch.agent_pid();
  ::kill(agent, SIGSTOP);
  const test::Outcome refused = test::run_command({"save", run.output().string()}, run.options());
  CHECK(refused.status == 1);
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, ContainsSubstring("host localhost (ranks 0 1) has sent nothing for ") &&
                              ContainsSubstring(fmt::format(
                                  " s: its agent, pid {}, may be stopped; the checkpoint is saved "
                                  "once it continues, but this command does not wait for that\n",
                                  agent)));
  ::kill(agent, SIGCONT);
  const test::Outcome saved = test::run_command({"save", run.output().string()}, run.options());
  CHECK(saved.status == 0);
  CHECK_THAT(saved.out, ContainsSubstring("/checkpoint-"));
}

/// The first flush of a rank but 0 is that of the trial save.
TEST_CASE("Hang: a job that is being stopped is not reported as moving again", "[fault]") {
  const test::TempDir gates;
  const fs::path gate = gates.path() / "gate";
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const WatchedRun run("0.3", {{"DSTRAIN_FAULT_RANK", "1"},
                               {"DSTRAIN_FAULT", "fsync:2:late"},
                               {"DSTRAIN_FAULT_GATE", gate.string()}});
  Launch launch = run.start();
  REQUIRE(launch.wait_for_output("step 100/"));
  const pid_t pid = run.status().at("ranks").at(1).at("pid").get<pid_t>();
  ::kill(pid, SIGSTOP);
  REQUIRE(launch.wait_for_error("stacks of rank"));
  launch.signal(SIGTERM);
  REQUIRE(launch.wait_for_error("saving and stopping"));
  ::kill(pid, SIGCONT);
  CHECK(launch.wait_until([&] {
    const std::string where = run.status({"--stacks"}).value("where", nlohmann::json()).dump();
    return where.find("waiting for a checkpoint to be whole") != where.npos;
  }));
  const UniqueFd opened(::open(gate.c_str(), O_WRONLY | O_CLOEXEC));
  CHECK(launch.wait() == 75);
  CHECK_THAT(launch.err(), !ContainsSubstring("the job makes progress again"));
}

TEST_CASE("Stop: a save that moves slowly gets its time", "[fault]") {
  const WatchedRun run("5", {{"DSTRAIN_FAULT", "flush:1+:slow"}});
  std::vector<std::string> command = run.command(wide_model);
  command.insert(command.begin(), {"--grace", "2"});
  Launch launch(command, run.options());
  REQUIRE(launch.wait_for_output("step 2/"));
  const test::Outcome stopped = test::run_command({"stop", run.output().string()}, run.options());
  CAPTURE(launch.err());
  CHECK(stopped.status == 0);
  CHECK_THAT(stopped.out, ContainsSubstring("ended with status 75\n"));
  CHECK(launch.wait() == 75);
  CHECK(checkpoint::list_checkpoints(run.output()).size() == 1);
}

TEST_CASE("Stop: a save that is killed is an error", "[fault]") {
  const WatchedRun run("5", {{"DSTRAIN_FAULT", "flush:3:hang"}, {"DSTRAIN_FAULT_RANK", "1"}});
  std::vector<std::string> command = run.command(wide_model);
  command.insert(command.begin(), {"--grace", "2"});
  Launch launch(command, run.options());
  REQUIRE(launch.wait_for_output("step 2/"));
  const test::Outcome stopped = test::run_command({"stop", run.output().string()}, run.options());
  CHECK(stopped.status == status::unsaved);
  CHECK_THAT(
      stopped.out,
      ContainsSubstring("ended with status 74: its last checkpoint was not completed and is lost"));
  CHECK(launch.wait() == status::unsaved);
  CHECK_THAT(launch.err(),
             ContainsSubstring("error: the ranks were killed while saving") &&
                 ContainsSubstring(
                     "they made no progress for 2 s; for a slow disk, pass a longer --grace"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Stop: a save that SLURM's time limit kills is an error of its own", "[fault]") {
  const std::time_t end = std::time(nullptr) + 5;
  const WatchedRun run("5", {{"DSTRAIN_FAULT", "flush:3:hang"},
                             {"DSTRAIN_FAULT_RANK", "1"},
                             {"SLURM_JOB_ID", "7"},
                             {"SLURM_JOB_END_TIME", std::to_string(end)}});
  Launch launch(run.command(wide_model), run.options());
  REQUIRE(launch.wait_for_output("step 2/"));
  launch.signal(SIGTERM);
  REQUIRE(launch.wait_for_error("saving and stopping (up to 30 s, longer while a save"));
  CHECK(launch.wait_for_error("warning: SLURM's time limit (SLURM_JOB_END_TIME) has passed: "));
  CHECK(std::time(nullptr) >= end);
  ::kill(run.status().at("ranks").at(1).at("pid").get<pid_t>(), SIGKILL);
  CHECK(launch.wait() == status::unsaved);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(),
             ContainsSubstring("error: the ranks were killed while saving, and that checkpoint "
                               "is lost: rank 1 on localhost was killed by SIGKILL") &&
                 ContainsSubstring(", and not by dstrain; SLURM's time limit (SLURM_JOB_END_TIME) "
                                   "has passed: have SLURM stop the ranks earlier"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Hang: a rank that computes without end is named", "[fault]") {
  const WatchedRun run(
      "0.3", {{"DSTRAIN_FAULT_FILES", "metrics.jsonl"}, {"DSTRAIN_FAULT", "write:60:spin"}});
  Launch launch = run.start();
  REQUIRE(launch.wait_for_error("stacks of rank"));
  CHECK_THAT(launch.err(), ContainsSubstring("rank 0 is missing in collective"));
  CHECK_THAT(launch.err(), ContainsSubstring("running: step 60, between steps"));
  CHECK_THAT(launch.err(), ContainsSubstring("spin_for_ever"));
}

TEST_CASE("Hang: a disk that blocks a checkpoint is distinguished from a hung rank", "[fault]") {
  const WatchedRun run("0.1", {{"DSTRAIN_FAULT_RANK", "1"}, {"DSTRAIN_FAULT", "fsync:2:hang"}});
  Launch launch = run.start({"--save_steps", "20"});
  REQUIRE(launch.wait_for_error("rank 1 does not make progress with a checkpoint"));
  REQUIRE(launch.wait_for_error("stacks of rank"));
  CHECK_THAT(launch.err(), ContainsSubstring("waiting for a checkpoint to be whole"));
  CHECK_THAT(launch.err(), ContainsSubstring("fsync"));
}

TEST_CASE("Hang: a slow save and a suspended launcher raise no alarm", "[fault]") {
  const test::TempDir gates;
  const fs::path gate = gates.path() / "gate";
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const WatchedRun run("0.5", {{"DSTRAIN_FAULT_RANK", "1"},
                               {"DSTRAIN_FAULT", "fsync:2:late"},
                               {"DSTRAIN_FAULT_GATE", gate.string()}});
  Launch launch = run.start({"--save_steps", "20"});
  CHECK(launch.wait_until([&] {
    const std::string where = run.status({"--stacks"}).value("where", nlohmann::json()).dump();
    return where.find("waiting for a checkpoint to be whole for 2 s") != where.npos;
  }));
  const UniqueFd opened(::open(gate.c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(launch.wait_for_output("saved "));
  launch.signal(SIGSTOP);
  const std::ptrdiff_t steps = steps_in(run.output());
  CHECK(launch.wait_until([&] { return steps_in(run.output()) > steps + 200; }));
  launch.signal(SIGCONT);
  CHECK(launch.wait_for_output("saved ", 3));
  CHECK_THAT(launch.err(), !ContainsSubstring(hang_warning));
}

TEST_CASE("Hang: a rendezvous that times out names the rank and the host that are missing",
          "[fault]") {
  const WatchedRun run("30", {{"DSTRAIN_FAULT_RANK", "1"},
                              {"DSTRAIN_FAULT_FILES", "tokens.bin"},
                              {"DSTRAIN_FAULT", "open:1:hang"}});
  std::vector<std::string> words = test::ResumableRun{.ranks = 2}.endless(run.output());
  words.insert(words.begin(), {"--timeout", "2"});
  const test::Outcome outcome = test::run_command(words, run.options());
  CHECK(outcome.status == 4);
  CHECK_THAT(outcome.err,
             ContainsSubstring("when rank 0 timed out: rank 1 has not reached the rendezvous"));
  CHECK_THAT(outcome.err, ContainsSubstring("rank 1 (host "));
}

TEST_CASE("Hang: the error and the hang report give a collective the same number", "[fault]") {
  const WatchedRun run("30");
  std::vector<std::string> words = test::ResumableRun{.ranks = 2, .stage = 3}.endless(run.output());
  words.insert(words.begin(), {"--timeout", "3"});
  Launch launch(words, run.options());
  REQUIRE(launch.wait_for_output("step 100/"));
  ::kill(run.status().at("ranks").at(1).at("pid").get<pid_t>(), SIGSTOP);
  CHECK(launch.wait() == 4);
  CAPTURE(launch.err());
  const std::string error = launch.err();
  std::smatch found;
  REQUIRE(std::regex_search(
      error, found,
      std::regex(
          "error: (collective \\d+): .* on rank 0 timed out after 3 s: waiting for rank 1")));
  CHECK_THAT(error, ContainsSubstring("when rank 0 timed out: "));
  CHECK_THAT(error,
             ContainsSubstring("; in " + found.str(1) + ", ") && !ContainsSubstring("operation"));
}

TEST_CASE("Hang: nodes that are started by hand name the host that never comes", "[fault]") {
  using Words = std::vector<std::string>;
  struct Row {
    const char* node;
    bool hostfile;
    const char* error;
    const char* headline;
  };
  const auto row = GENERATE(values<Row>({
      {"0", true, "waiting for ranks 2 3 (host w1)", "for ranks 2 3 (host w1)"},
      {"1", true, "waiting for rank 0", "for rank 0 (host w0)"},
      {"0", false, "waiting for ranks 2 3 (node rank 1)", "for ranks 2 3 (node rank 1)"},
  }));
  const WatchedRun run("30");
  const std::string hosts = (run.folder.path() / "hosts").string();
  write_text_file(hosts, "w0 slots=2\nw1 slots=2\n");
  Words words = row.hostfile ? Words{"-H", hosts} : Words{"--num_nodes", "2", "--num_gpus", "2"};
  const Words by_hand{"--no_ssh",
                      "--node_rank",
                      row.node,
                      "--timeout",
                      "2",
                      "--master_addr",
                      "127.0.0.1",
                      "--master_port",
                      std::to_string(test::free_port())};
  words.insert(words.end(), by_hand.begin(), by_hand.end());
  const Words training = test::ResumableRun{.ranks = 4}.endless(run.output());
  words.insert(words.end(), training.begin() + 2, training.end());  // without --num_gpus N
  Launch::Options options = run.options();
  options.env.push_back({"DSTRAIN_TOKEN", "shared"});
  const test::Outcome outcome = test::run_command(words, options);
  CHECK(outcome.status == 4);
  CHECK_THAT(outcome.err, ContainsSubstring("rendezvous timed out after 2 s at ") &&
                              ContainsSubstring(row.error));
  // One of them may be running when it is looked at, and then has a line of its own.
  CHECK_THAT(outcome.err,
             ContainsSubstring(std::string("timed out: all ranks here wait in the rendezvous, ") +
                               row.headline + "\n  rank"));
  CHECK_THAT(outcome.err, !ContainsSubstring("no rank waits for another"));
}
