// Launches through srun, mpirun and mpiexec: the real ones.
#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/catalog.h"
#include "tests/e2e/resumable_run.h"
#include "tests/net/task_starters.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::Launch;
using test::TaskStarterUnderTest;
using Words = std::vector<std::string>;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

const std::string run_until_killed = "echo here; while :; do sleep 1; done";

struct Ran {
  int status = -1;
  std::string out;
  std::string err;
};

Ran run(const TaskStarterUnderTest& starter,
        const Words& words,
        const std::vector<launcher::EnvVar>& more = {}) {
  std::vector<launcher::EnvVar> environment = starter.environment();
  environment.insert(environment.end(), more.begin(), more.end());
  Launch launch(words, {.env = environment, .directory = ""});
  const int status = launch.wait();
  CHECK(launch.nothing_left());
  return {status, launch.out(), launch.err()};
}

/// `train ...`, without an end unless `extra` sets one.
Words training(int ranks, const fs::path& output, const Words& extra = {}) {
  const Words words = test::ResumableRun{.ranks = ranks}.endless(output, extra);
  return {std::find(words.begin(), words.end(), "train"), words.end()};
}

void wait_for_ranks(Launch& launch) {
  for (int rank = 0; rank < 3; ++rank) {
    REQUIRE(launch.wait_for_output(fmt::format("[rank {}]", rank)));
  }
}

/// Found by its name and environment.
void kill_rank(const Launch& launch, int rank) {
  const std::string entry = '\0' + fmt::format("RANK={}", rank) + '\0';
  for (const pid_t pid : launch.processes()) {
    if (test::read_bytes(fmt::format("/proc/{}/comm", pid)) != "dstraind\n") continue;
    const std::string environment = test::read_bytes(fmt::format("/proc/{}/environ", pid));
    if (environment.find(entry) != environment.npos) ::kill(pid, SIGKILL);
  }
}

/// To the srun, mpirun or mpiexec of the job; srun is two processes, of which the second helps.
void signal_starter(const Launch& launch, int signal) {
  constexpr std::array<std::string_view, 4> starters{"srun", "mpirun", "mpiexec",
                                                     "prterun"};  // OpenMPI 5
  bool found = false;
  for (const pid_t pid : launch.processes()) {
    const std::string name = test::read_bytes(fmt::format("/proc/{}/comm", pid));
    const bool starts = std::ranges::any_of(
        starters, [&](std::string_view starter) { return name.starts_with(starter); });
    found |= starts && ::kill(pid, signal) == 0;
  }
  REQUIRE(found);
}

/// Ranks of a shell that runs until it is killed, under any of the launchers.
struct RunningTasks {
  std::string launcher = test::any_task_launcher();
  TaskStarterUnderTest starter{launcher};
  Launch launch{starter.shell(run_until_killed), {.env = starter.environment(), .directory = ""}};
  RunningTasks() { wait_for_ranks(launch); }
};

}  // namespace

TEST_CASE("Task launch: each task is the rank that the plan says", "[net][tasks]") {
  const std::string launcher = test::any_task_launcher();
  CAPTURE(launcher);
  const TaskStarterUnderTest starter(launcher);
  const std::string task = launcher == "slurm"     ? "$SLURM_PROCID on $SLURMD_NODENAME"
                           : launcher == "openmpi" ? "$OMPI_COMM_WORLD_RANK on n1"
                                                   : "$PMI_RANK on n1";
  const Ran ran = run(starter, starter.shell("echo rank $RANK of $WORLD_SIZE, $LOCAL_RANK of "
                                             "$LOCAL_WORLD_SIZE, task " +
                                             task + " ${DSTRAIN_AGENTS-}."));
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  const std::vector<std::string> lines = sorted_lines(ran.out);
  REQUIRE(lines.size() == 3);
  const bool slurm = launcher == "slurm";
  CHECK_THAT(lines[0],
             ContainsSubstring("rank 0 of 3, 0 of") && ContainsSubstring("task 0 on n1 ."));
  CHECK_THAT(lines[1],
             ContainsSubstring("rank 1 of 3, 1 of") && ContainsSubstring("task 1 on n1 ."));
  CHECK_THAT(lines[2], ContainsSubstring(slurm ? "rank 2 of 3, 0 of 1, task 2 on n2 ."
                                               : "rank 2 of 3, 2 of 3, task 2 on n1 ."));
}

TEST_CASE("Task launch: ranks use the GPUs that SLURM shows them", "[net][tasks]") {
  const test::TempDir folder;
  for (const char* gpu : {"nvidia0", "nvidia1", "nvidia2", "nvidia3"}) {
    std::ofstream(folder.path() / gpu) << "";
  }
  const char* const shown = GENERATE("3,2", "1");  // of a node's tasks, or of each task
  const TaskStarterUnderTest starter("slurm");
  const Ran ran =
      run(starter, starter.shell("echo rank $RANK uses $CUDA_VISIBLE_DEVICES."),
          {{"DSTRAIN_GPU_DIRECTORY", folder.path().string()}, {"CUDA_VISIBLE_DEVICES", shown}});
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  const std::vector<std::string> lines = sorted_lines(ran.out);
  REQUIRE(lines.size() == 3);
  const std::string alone = std::string(shown).substr(0, 1);
  CHECK_THAT(lines[0], ContainsSubstring(fmt::format("rank 0 uses {}.", shown)));
  CHECK_THAT(lines[1], ContainsSubstring(fmt::format("rank 1 uses {}.", shown)));
  CHECK_THAT(lines[2], ContainsSubstring(fmt::format("rank 2 uses {}.", alone)));
}

TEST_CASE("Task launch: training has the losses of a local launch", "[net][tasks]") {
  const std::string launcher = test::any_task_launcher();
  CAPTURE(launcher);
  const json golden = test::read_json(test::golden_folder / "plain.json");
  const test::TempDir folder;
  json config = golden.at("ds_config");
  config["zero_optimization"]["stage"] = 2;
  const auto losses = [&](const Words& options, const std::vector<launcher::EnvVar>& environment) {
    const test::TrainRun run = test::run_train(options, config, folder.path() / "out",
                                               golden.at("arguments"), environment);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    return test::results_of(run);
  };
  const auto local = losses({"--launcher", "local", "--num_gpus", "3"}, {{"OMP_NUM_THREADS", "1"}});
  const TaskStarterUnderTest starter(launcher);
  CHECK(losses(starter.options(), starter.environment()) == local);
}

TEST_CASE("Task launch: the rank that fails is named and its status is the job's", "[net][tasks]") {
  const std::string launcher = test::any_task_launcher();
  const auto [end, status, told] = GENERATE(
      table<const char*, int, const char*>({{"exit 7", 7, "ended with status 7"},
                                            {"exit 1", 1, "ended with status 1"},
                                            {"kill -9 $$", 137, "was killed by SIGKILL"}}));
  CAPTURE(launcher, end);
  const TaskStarterUnderTest starter(launcher);
  const Ran ran =
      run(starter, starter.shell(fmt::format("if [ $RANK = 1 ]; then echo bad luck; {}; fi; {}",
                                             end, run_until_killed)));
  CAPTURE(ran.err);
  CHECK(ran.status == status);
  CHECK_THAT(ran.err, ContainsSubstring("error: rank 1 on ") && ContainsSubstring(told) &&
                          ContainsSubstring("bad luck"));
}

TEST_CASE("Task launch: agents that end with a killed rank of MPI are not reported",
          "[net][tasks]") {
  const std::string launcher = GENERATE("openmpi", "mpich");
  CAPTURE(launcher);
  const TaskStarterUnderTest starter(launcher);
  const std::string plugin = "libdstrain_mpi_" + launcher + ".so";
  if (!fs::exists(fs::path(DSTRAIN_PROGRAM).parent_path() / plugin)) test::skip("needs " + plugin);
  const test::TempDir folder;
  std::vector<launcher::EnvVar> environment = starter.environment();
  environment.push_back({"DSTRAIN_COMM", "mpi"});
  // UCX would abort a rank that reads from the memory of the killed one: a second victim.
  environment.push_back({"UCX_TLS", "^cma"});
  Words words = starter.options();
  for (const std::string& word : training(3, folder.path() / "out")) words.push_back(word);
  Launch launch(words, {.env = environment, .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 2/"));
  // All that a busy launcher finds at once: the other agents' ends before the last one's word.
  launch.signal(SIGSTOP);
  kill_rank(launch, 2);
  REQUIRE(launch.wait_until([&] { return launch.processes().size() == 1; }));
  launch.signal(SIGCONT);
  CHECK(launch.wait() == 137);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(),
             ContainsSubstring("was killed by SIGKILL") && !ContainsSubstring("is lost"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: no rank is blamed when what started them is killed", "[net][tasks]") {
  RunningTasks tasks;
  Launch& launch = tasks.launch;
  CAPTURE(tasks.launcher);
  signal_starter(launch, SIGKILL);
  CHECK(launch.wait() != 0);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(), !ContainsSubstring("error: rank "));
  const char* const name = tasks.launcher == "slurm" ? "srun" : "mpi";
  CHECK_THAT(launch.err(), ContainsSubstring(std::string("error: ") + name) &&
                               ContainsSubstring("was killed by SIGKILL, which ends the ranks"));
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: no rank is blamed when what started them is asked to end", "[net][tasks]") {
  RunningTasks tasks;
  Launch& launch = tasks.launch;
  CAPTURE(tasks.launcher);
  signal_starter(launch, SIGTERM);
  CHECK(launch.wait() != 0);
  CAPTURE(launch.err());
  CHECK_THAT(launch.err(), !ContainsSubstring("error: rank "));
  const char* const told = tasks.launcher == "slurm"
                               ? "kills its tasks (srun: forcing job termination)"
                               : "error: SIGTERM on localhost asked the job to stop";
  CHECK_THAT(launch.err(), ContainsSubstring(told));
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: a Ctrl-C ends all", "[net][tasks]") {
  RunningTasks tasks;
  Launch& launch = tasks.launch;
  CAPTURE(tasks.launcher);
  launch.signal(SIGINT);
  CHECK(launch.wait() == 130);
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: a killed launcher leaves nothing behind", "[net][tasks]") {
  const std::string launcher = test::any_task_launcher();
  CAPTURE(launcher);
  const TaskStarterUnderTest starter(launcher);
  Launch launch(starter.shell("trap '' TERM INT HUP; " + run_until_killed),
                {.env = starter.environment(), .directory = ""});
  wait_for_ranks(launch);
  launch.signal(SIGKILL);
  CHECK(launch.wait_without_reading() == 137);
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: if the starter starts nothing its message is the cause", "[net][tasks]") {
  const auto [launcher, bad, told] = GENERATE(table<const char*, const char*, const char*>(
      {{"openmpi", "--no-such-option", "no-such-option"},
       {"mpich", "-no-such-option", "no-such-option"},
       {"slurm", "--no-such-option", "no-such-option"}}));
  CAPTURE(launcher);
  const TaskStarterUnderTest starter(launcher);
  const Ran ran =
      run(starter, starter.shell("echo never", {"--launcher", launcher, "--launcher_args", bad}));
  CHECK(ran.status == 3);
  CHECK(ran.out.empty());
  CHECK_THAT(ran.err, ContainsSubstring("ended with status") && ContainsSubstring(told));
}

TEST_CASE("Task launch: a host that mpirun cannot reach is named", "[net][tasks]") {
  if (!fs::exists("/usr/bin/ssh")) test::skip("needs openssh-client");
  const TaskStarterUnderTest starter("openmpi");
  const test::TempDir folder;
  const fs::path hosts = folder.path() / "hosts";
  std::ofstream(hosts) << "localhost slots=1\nnosuch.invalid slots=1\n";
  const Ran ran =
      run(starter, {"-H", hosts.string(), "--launcher", "openmpi", "sh", "-c", "echo never"});
  CAPTURE(ran.err);
  CHECK(ran.status == 3);
  CHECK_THAT(ran.err, ContainsSubstring("resolve hostname nosuch") &&
                          ContainsSubstring("pass --launcher ssh"));
}

TEST_CASE("Task launch: mpiexec of MPICH reads no IPv6 address", "[net][tasks]") {
  const TaskStarterUnderTest starter("mpich");
  const test::TempDir folder;
  const fs::path hosts = folder.path() / "hosts";
  std::ofstream(hosts) << "::1 slots=2\n";
  const Words command{"-H", hosts.string(), "--launcher", "mpich", "sh", "-c", "echo on"};
  const Ran here = run(starter, command);
  CAPTURE(here.err);
  CHECK(here.status == 0);
  CHECK(sorted_lines(here.out).size() == 2);

  std::ofstream(hosts) << "fd00::1 slots=1\n";
  const Ran elsewhere = run(starter, command);
  CHECK(elsewhere.status == 3);
  CHECK_THAT(elsewhere.err,
             ContainsSubstring("fd00::1: MPICH's mpiexec does not accept the IPv6 address"));
}

TEST_CASE("Task launch: a training that SLURM signals saves and asks to be queued again",
          "[net][tasks]") {
  const TaskStarterUnderTest starter("slurm");
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  Launch launch(training(3, output),
                {.env = starter.environment(), .directory = test::golden_folder.string()});
  REQUIRE(launch.wait_for_output("step 2/"));
  test::output_of({"/usr/bin/scancel", "--signal=TERM", starter.job()});
  CHECK(launch.wait() == 75);
  CAPTURE(launch.err());
  CHECK(launch.nothing_left());
  const auto found = checkpoint::list_checkpoints(output);
  REQUIRE(found.size() == 1);
  CHECK(checkpoint::verify(found.front().path).whole());
}

TEST_CASE("Task launch: what ends an allocation ends the job", "[net][tasks]") {
  const TaskStarterUnderTest starter("slurm");
  const std::string cause = GENERATE("scancel", "a node that is down");
  CAPTURE(cause);
  Launch launch(starter.shell("trap '' TERM; " + run_until_killed),
                {.env = starter.environment(), .directory = ""});
  wait_for_ranks(launch);
  test::output_of(cause == "scancel" ? Words{"/usr/bin/scancel", starter.job()}
                                     : Words{"/usr/bin/scontrol", "update", "NodeName=n2",
                                             "State=DOWN", "Reason=test"});
  CHECK(launch.wait() != 0);
  CHECK_THAT(launch.err(), ContainsSubstring("error: "));
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: a node that is drained finishes what it has", "[net][tasks]") {
  const TaskStarterUnderTest starter("slurm");
  const test::TempDir folder;
  Launch launch(starter.shell(fmt::format("echo here; until test -e {}; do sleep 0.01; done",
                                          (folder.path() / "drained").string())),
                {.env = starter.environment(), .directory = ""});
  wait_for_ranks(launch);
  test::output_of({"/usr/bin/scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test"});
  fs::create_directory(folder.path() / "drained");
  CHECK(launch.wait() == 0);
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: a job answers commands and restarts", "[net][tasks]") {
  const std::string launcher = test::any_task_launcher();
  CAPTURE(launcher);
  const TaskStarterUnderTest starter(launcher);
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  std::vector<launcher::EnvVar> environment = starter.environment();
  environment.push_back({"XDG_RUNTIME_DIR", folder.path().string()});
  const Launch::Options place{.env = environment, .directory = test::golden_folder.string()};
  Words words = starter.options();
  words.insert(words.end(), {"--max_restarts", "1"});
  for (const std::string& word : training(3, output)) words.push_back(word);
  Launch launch(words, place);
  REQUIRE(launch.wait_for_output("step 2/"));
  CHECK(test::run_command({"save", output.string()}, place).status == 0);
  const std::string status = test::run_command({"status", output.string(), "--json"}, place).out;
  const json ranks = json::parse(status).at("ranks");
  REQUIRE(ranks.size() == 3);
  const int inside = ranks.at(1).at("pid").get<int>();
  // What SLURM's namespace calls it is not what we do.
  CHECK(inside > 0);
  kill_rank(launch, 1);
  const bool restarts = launch.wait_for_error("restart 1");
  CAPTURE(launch.err());
  REQUIRE(restarts);
  const auto count_steps = [&] {
    return test::read_metrics(output).size();
  };
  const std::size_t before = count_steps();
  REQUIRE(launch.wait_until([&] { return count_steps() != before; }));
  CHECK(test::run_command({"stop", output.string()}, place).status == 0);
  CHECK(launch.wait() == 75);
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: a dry run shows the one command", "[net][tasks]") {
  const std::string launcher = test::any_task_launcher();
  const TaskStarterUnderTest starter(launcher);
  const Ran ran = run(starter, starter.shell("echo never", {"--dry_run"}));
  CAPTURE(launcher, ran.err);
  REQUIRE(ran.status == 0);
  const json shown = json::parse(ran.out);
  CHECK(shown.at("launcher") == launcher);
  CHECK(shown.at("world_size") == 3);
  REQUIRE(shown.at("commands").size() == 1);
  const Words command = shown.at("commands").at(0);
  REQUIRE(command.size() > 4);
  CHECK(Words(command.end() - 3, command.end() - 1) == Words{"agent", "--connect"});
  if (launcher == "slurm") CHECK(std::ranges::count(command, "--mpi=pmix") == 1);
}

TEST_CASE("Task launch: one launcher per node is one job", "[net][tasks]") {
  const TaskStarterUnderTest starter("slurm");
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  std::vector<launcher::EnvVar> environment = starter.environment();
  environment.push_back({"DSTRAIN_TOKEN", "the same on each node"});
  const Launch::Options place{.env = environment,
                              .directory = test::golden_folder.string(),
                              .wrapper = {"/usr/bin/srun", "--nodes=2", "--ntasks=2",
                                          "--ntasks-per-node=1", "--kill-on-bad-exit=1"}};
  Words words{"--num_gpus", "1", "--master_addr", test::SlurmCluster::address};
  for (const std::string& word : training(2, output, {"--max_steps", "3"})) words.push_back(word);
  Launch launch(words, place);
  const int status = launch.wait();
  CAPTURE(launch.err());
  CHECK(status == 0);
  CHECK(test::read_metrics(output).size() == 3);
  CHECK(launch.nothing_left());
}

TEST_CASE("Task launch: several launchers on a node are refused", "[net][tasks]") {
  const TaskStarterUnderTest starter("slurm");
  const Launch::Options place{.env = starter.environment(),
                              .directory = "",
                              .wrapper = {"/usr/bin/srun", "--nodes=2", "--ntasks=3"}};
  Launch launch({"--", "sh", "-c", "echo never"}, place);
  CHECK(launch.wait() == 2);
  CHECK_THAT(launch.err(), ContainsSubstring("SLURM_STEP_NUM_TASKS=3 on n[1-2]: srun has"));
  CHECK(launch.out().empty());
}

TEST_CASE("Task launch: a rank may start tasks of SLURM itself", "[net][tasks]") {
  const TaskStarterUnderTest starter("slurm");
  const Ran ran =
      run(starter, starter.shell("[ $RANK != 0 ] || srun --overlap -N2 -n2 -Q "
                                 "sh -c 'echo task $SLURM_PROCID on $SLURMD_NODENAME'"));
  CAPTURE(ran.err);
  CHECK(ran.status == 0);
  CHECK_THAT(ran.out, ContainsSubstring("task 0 on n1") && ContainsSubstring("task 1 on n2"));
}
