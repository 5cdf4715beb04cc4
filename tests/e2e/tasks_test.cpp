// Several copies of a command that mpirun or srun starts, each of which might take itself for all.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using Words = std::vector<std::string>;
using test::train_command;

namespace {

namespace fs = std::filesystem;

const std::string dstraind = fs::path(DSTRAIN_PROGRAM).parent_path() / "dstraind";

/// `dstrain WORDS`, or `dstraind WORDS` where the wrapper ends with it: what follows its first word
/// is then no more than the name that dstrain was called by.
Launch::Options mpirun(const std::string& tasks, Words rest = {}) {
  const std::string program = "/usr/bin/mpirun.openmpi";
  if (!fs::exists(program)) test::skip("needs openmpi-bin");
  Words words{program, "-np", tasks, "--oversubscribe", "--bind-to", "none"};
  words.insert(words.end(), rest.begin(), rest.end());
  return {.env = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                  {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                  {"OMP_NUM_THREADS", "1"},
                  {"ASAN_OPTIONS", "detect_leaks=0"}},  // MPI's own, which the sanitizer would tell
          .directory = test::golden_folder.string(),
          .wrapper = words};
}

/// Starts the dstraind in place of dstrain.
const Words as_daemon{"sh", "-c", "shift; exec \"$0\" \"$@\"", dstraind};

}  // namespace

TEST_CASE("Tasks: launchers that mpirun starts are refused before anything is written",
          "[e2e][tasks]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  Launch launch(train_command(output), mpirun("2"));
  const int status = launch.wait();
  CAPTURE(launch.err());
  CHECK(status == 2);
  CHECK_THAT(
      launch.err(),
      ContainsSubstring("OMPI_COMM_WORLD_SIZE=2: mpirun of OpenMPI has started this process as "
                        "one of 2 tasks"));
  CHECK_FALSE(fs::exists(output));
}

TEST_CASE("Tasks: ranks end with the starter that is killed", "[e2e][tasks]") {
  const bool mpich = GENERATE(true, false);  // with its proxy; OpenMPI's mpirun is its own
  const std::string program = mpich ? "/usr/bin/mpiexec.mpich" : "/usr/bin/mpirun.openmpi";
  if (!fs::exists(program)) test::skip("needs mpich and openmpi");
  const test::TempDir folder;
  const Launch::Options openmpi = mpirun("2", as_daemon);
  Words wrapper{program, "-n", "2"};
  wrapper.insert(wrapper.end(), as_daemon.begin(), as_daemon.end());
  if (!mpich) wrapper = openmpi.wrapper;
  Words train = test::ResumableRun{}.endless(folder.path() / "out");
  train.erase(train.begin(), std::ranges::find(train, "train"));  // launch options
  auto env = openmpi.env;
  env.insert(env.end(), {{"OMP_NUM_THREADS", "1"}, {"ASAN_OPTIONS", "detect_leaks=0"}});
  Launch launch(train, {.env = env, .directory = test::golden_folder.string(), .wrapper = wrapper});
  REQUIRE(launch.wait_for_output("step 2/"));
  int killed = 0;
  for (const pid_t pid : launch.processes()) {
    const std::string name = test::read_bytes(fmt::format("/proc/{}/comm", pid));
    const auto is = [&name](const char* beginning) {
      return name.starts_with(beginning);
    };
    if (!is("mpiexec") && !is("hydra") && !is("mpirun") && !is("prterun") && !is("orterun"))
      continue;
    kill(pid, SIGKILL);
    ++killed;
  }
  CHECK(killed == (mpich ? 2 : 1));
  CHECK(launch.wait_without_reading() == 137);
  CHECK(launch.nothing_left());
}

TEST_CASE("Tasks: a single copy under mpirun is a job", "[e2e][tasks]") {
  const test::TempDir folder;
  const Words wrapper = GENERATE(Words{}, as_daemon);
  Launch launch(train_command(folder.path() / "out"), mpirun("1", wrapper));
  const int status = launch.wait();
  CAPTURE(launch.err());
  CHECK(status == 0);
}

TEST_CASE("Tasks: copies with a rank each are one job", "[e2e][tasks]") {
  const test::TempDir folder;
  const std::string identify =
      "shift; export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 "
      "LOCAL_RANK=$OMPI_COMM_WORLD_RANK MASTER_PORT=29877; exec \"$0\" \"$@\"";
  Launch launch(train_command(folder.path() / "out"),
                mpirun("2", {"sh", "-c", identify, dstraind}));
  const int status = launch.wait();
  CAPTURE(launch.err());
  CHECK(status == 0);
  CHECK(test::read_metrics(folder.path() / "out").size() == 2);
}

TEST_CASE("Tasks: an allocation and a launcher per node are no copies", "[e2e][tasks]") {
  Launch::Options batch{.env = {{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}, .directory = {}};
  Launch script({"--num_gpus", "2", "sh", "-c", "exit 0"}, batch);
  CHECK(script.wait() == 0);
  const Launch::Options step{
      .env = {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"SLURM_JOB_NUM_NODES", "2"}},
      .directory = {}};
  Launch refused({"--launcher", "local", "sh", "-c", "exit 0"}, step);
  CHECK(refused.wait() == 2);
  CHECK_THAT(refused.err(), ContainsSubstring("SLURM_STEP_NUM_TASKS=2"));
  for (const char* launcher : {"auto", "local"}) {
    Launch node({"--launcher", launcher, "--no_ssh", "--num_nodes", "2", "--node_rank", "1",
                 "--master_addr", "127.0.0.1", "sh", "-c", "exit 0"},
                step);
    CHECK(node.wait() == 0);
  }
}
