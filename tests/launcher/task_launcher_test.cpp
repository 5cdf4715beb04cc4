#include "launcher/plan/task_launcher.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "launcher/plan/resources.h"
#include "runtime/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

namespace {

constexpr const char* hydra =
    "HYDRA build details:\n    Version:                                 4.2.1\n"
    "    Release Date:                            Wed Apr 17 15:30:02 CDT 2024\n"
    "    Launchers available:                     ssh rsh fork slurm ll lsf sge manual persist\n";

/// Programs on a PATH of their own, each of which prints a text to whatever it is asked.
class Programs {
 public:
  Programs() { ::setenv("PATH", folder_.path().c_str(), 1); }

  void add(const std::string& name, const std::string& printed) const {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path) << "#!/bin/sh\necho '" << printed << "'\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path() / name; }

 private:
  test::TempDir folder_;
};

Resources three_ranks(TaskLauncher launcher) {
  return {.plan = HostPlan({{"a", {0, 1}}, {"b", {0}}}),
          .remote = {true, true},
          .node_rank = std::nullopt,
          .task_launcher = launcher,
          .warnings = {}};
}

TaskCommand command_of(TaskLauncher launcher, const LaunchOptions& options = {}) {
  return make_task_command(three_ranks(launcher), options);
}

/// The words between the program and the agent that each task runs.
Words words_of(const TaskCommand& command) {
  const auto agent = std::find(command.argv.begin(), command.argv.end(), "agent");
  REQUIRE(command.argv.end() - agent == 3);
  return {command.argv.begin() + 1, agent - 1};
}

}  // namespace

TEST_CASE("Task launcher: a program is recognized by its version output", "[launcher]") {
  const auto [printed, launcher, major, minor] =
      GENERATE(table<const char*, TaskLauncher, int, int>(
          {{"slurm 20.11.9\n", TaskLauncher::slurm, 20, 11},
           {"slurm-wlm 22.05.8\n", TaskLauncher::slurm, 22, 5},
           {"slurm-wlm 24.11.5\n", TaskLauncher::slurm, 24, 11},
           {"slurm 25.11.0-rc1\n", TaskLauncher::slurm, 25, 11},
           {"mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to ...\n", TaskLauncher::openmpi, 4, 1},
           {"mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n", TaskLauncher::openmpi, 4, 1},
           {"mpirun.openmpi (Open MPI) 5.0.7\n", TaskLauncher::openmpi, 5, 0},
           {hydra, TaskLauncher::mpich, 4, 2}}));
  CAPTURE(printed);
  const auto version = task_launcher_version(printed);
  REQUIRE(version);
  CHECK(version->launcher == launcher);
  CHECK(version->major == major);
  CHECK(version->minor == minor);
}

TEST_CASE("Task launcher: programs without a known version output are not recognized",
          "[launcher]") {
  const std::string printed =
      GENERATE("", "slurm", "slurm x.y", "slurm 24", "prterun (PRRTE) 3.0.8\n",
               "Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619\n",
               "srun: error: fetch_config: DNS SRV lookup failed\n", "(Open MPI) 99999999999.0");
  CAPTURE(printed);
  CHECK_FALSE(task_launcher_version(printed));
}

TEST_CASE("Task launcher: srun places ranks by a list that no rank inherits", "[launcher]") {
  const Programs programs;
  const std::string version = GENERATE("slurm 20.11.9", "slurm-wlm 22.05.8", "slurm-wlm 25.11.1");
  const bool pmix = GENERATE(true, false);
  programs.add("srun", version + (pmix ? "\n\tpmix" : ""));
  ::unsetenv("SLURM_STEP_ID");
  LaunchOptions options;
  options.launcher_args = {"--x"};
  const TaskCommand command = command_of(TaskLauncher::slurm, options);
  CHECK(command.argv.front() == programs.path("srun"));
  CHECK(words_of(command) == Words{"--distribution=arbitrary", "--nodelist=/dev/stdin",
                                   "--ntasks=3", "--kill-on-bad-exit=1", "--wait=0", "--overcommit",
                                   "--cpu-bind=none", "--input=none", "--export=ALL",
                                   pmix ? "--mpi=pmix" : "--mpi=none", "--x"});
  CHECK(command.host_list == "a\na\nb\n");
  CHECK(command.argv.back() == "SLURM_PROCID");
  ::setenv("SLURM_STEP_ID", "0", 1);
  CHECK(words_of(command_of(TaskLauncher::slurm)).back() == "--overlap");
}

TEST_CASE("Task launcher: mpirun of OpenMPI maps ranks in the order of a list", "[launcher]") {
  const Programs programs;
  const std::string name = GENERATE("mpirun.openmpi", "mpirun", "mpiexec");
  programs.add(name, GENERATE("mpirun (Open MPI) 4.0.5", "mpirun (Open MPI) 5.0.7"));
  LaunchOptions options;
  options.oversubscribe = GENERATE(false, true);
  const TaskCommand command = command_of(TaskLauncher::openmpi, options);
  Words expected{"-np",       "3",    "--hostfile", "/dev/stdin", "--map-by", "seq",
                 "--bind-to", "none", "--stdin",    "none",       "-x",       "DSTRAIN_AGENTS"};
  if (options.oversubscribe) expected.emplace_back("--oversubscribe");
  CHECK(command.argv.front() == programs.path(name));
  CHECK(words_of(command) == expected);
  CHECK(command.host_list == "a\na\nb\n");
  CHECK(command.argv.back() == "OMPI_COMM_WORLD_RANK");
}

TEST_CASE("Task launcher: the user's binding options replace ours", "[launcher]") {
  const Programs programs;
  programs.add("mpirun", "mpirun (Open MPI) 5.0.7");
  LaunchOptions options;
  options.launcher_args = GENERATE(Words{"--bind-to", "core"}, Words{"--bind-to=core"});
  const Words words = words_of(command_of(TaskLauncher::openmpi, options));
  const auto binds = [](const std::string& word) {
    return word.starts_with("--bind-to");
  };
  CHECK(std::ranges::count_if(words, binds) == 1);
  CHECK(words.back().ends_with("core"));
}

TEST_CASE("Task launcher: mpiexec of MPICH reads nothing from stdin", "[launcher]") {
  const Programs programs;
  const std::string name = GENERATE("mpiexec.mpich", "mpiexec.hydra", "mpiexec");
  programs.add(name, hydra);
  const TaskCommand command = command_of(TaskLauncher::mpich);
  CHECK(command.argv.front() == programs.path(name));
  CHECK(words_of(command) == Words{"-hosts", "a:2,b:1", "-n", "3"});
  CHECK(command.host_list.empty());
  CHECK(command.argv.back() == "PMI_RANK");
}

TEST_CASE("Task launcher: the name of a program does not matter", "[launcher]") {
  const Programs programs;
  programs.add("mpirun", hydra);
  programs.add("mpiexec", "mpirun (Open MPI) 4.1.4");
  CHECK(command_of(TaskLauncher::openmpi).argv.front() == programs.path("mpiexec"));
  CHECK(command_of(TaskLauncher::mpich).argv.front() == programs.path("mpirun"));
}

TEST_CASE("Task launcher: a program later on PATH is found", "[launcher]") {
  const Programs back;
  const Programs front;
  front.add("mpirun", hydra);
  back.add("mpirun", "mpirun (Open MPI) 5.0.7");
  ::setenv("PATH", (front.path("") + ":" + back.path("")).c_str(), 1);
  CHECK(command_of(TaskLauncher::openmpi).argv.front() == back.path("mpirun"));
}

TEST_CASE("Task launcher: a wrong program is reported with what was found", "[launcher]") {
  const Programs programs;
  CHECK_THROWS_WITH(
      command_of(TaskLauncher::slurm),
      "--launcher slurm: srun was not found on PATH; install it (Debian: slurm-client)");
  const auto [printed, shown] = GENERATE(table<std::string, std::string>(
      {{hydra, "mpich 4.2.1"},
       {"Intel(R) MPI Library, Version 2021.10", "Intel(R) MPI Library, Version 2021.10"},
       {"", "ended with status 0"},
       {std::string(1000, 'x'), std::string(200, 'x') + "... (1000 bytes)"}}));
  programs.add("mpiexec", printed);
  CHECK_THROWS_WITH(
      command_of(TaskLauncher::openmpi),
      ContainsSubstring("--launcher openmpi: no program on PATH identifies itself as") &&
          ContainsSubstring(programs.path("mpiexec") + " --version: " + shown) &&
          ContainsSubstring("pass --launcher ssh"));
}

TEST_CASE("Task launcher: a program that is too old is refused with its version", "[launcher]") {
  const Programs programs;
  programs.add("srun", "slurm 19.05.5");
  CHECK_THROWS_WITH(command_of(TaskLauncher::slurm),
                    programs.path("srun") +
                        " 19.05.5 is too old for --launcher slurm: install 20.11 "
                        "or newer, or use --launcher ssh");
}
