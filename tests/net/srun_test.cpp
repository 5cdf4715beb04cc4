// Ranks that the srun of a real SLURM starts, without a launcher of ours.
#include <filesystem>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/slurm_cluster.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::RankProcess;
using test::SlurmCluster;
using Words = std::vector<std::string>;

namespace {

namespace fs = std::filesystem;

const std::string daemon_path = fs::path(DSTRAIN_PROGRAM).parent_path() / "dstraind";

/// `srun OPTIONS PROGRAM...` in tests/golden, whose tasks have `variables` and a home of their own.
RankProcess srun(const SlurmCluster& cluster,
                 const Words& options,
                 const Words& program,
                 const Words& variables = {}) {
  Words words{"/usr/bin/srun", "-Q", "-K1", "--chdir=" + test::golden_folder.string()};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), program.begin(), program.end());
  Words environment{"PATH=/usr/bin:/bin", "HOME=" + cluster.folder().string(), "OMP_NUM_THREADS=1",
                    "DSTRAIN_TIMEOUT=300", cluster.environment()};
  environment.insert(environment.end(), variables.begin(), variables.end());
  return RankProcess({words, environment});
}

Words train(const fs::path& output) {
  Words words{daemon_path};
  const Words command = test::train_command(output);
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::vector<double> losses_in(const fs::path& output) {
  std::vector<double> losses;
  for (const auto& line : test::read_metrics(output)) losses.push_back(line.at("loss"));
  return losses;
}

std::vector<double> launched_losses(const fs::path& output) {
  Words command{"--launcher", "local", "--num_gpus", "2"};
  const Words train = test::train_command(output);
  command.insert(command.end(), train.begin(), train.end());
  const test::Outcome launched =
      test::run_command(command, {.env = {}, .directory = test::golden_folder.string()});
  CAPTURE(launched.err);
  REQUIRE(launched.status == 0);
  return losses_in(output);
}

}  // namespace

TEST_CASE("Srun: runs tasks on both nodes", "[net][slurm]") {
  const SlurmCluster cluster;
  const auto on = [](const std::string& node) {
    return test::output_of(
        {"/usr/bin/srun", "-Q", "-N2", "-n2", "/bin/sh", "-c",
         "test $SLURMD_NODENAME != " + node + " || echo $SLURM_PROCID of $SLURM_STEP_NUM_TASKS"});
  };
  CHECK(on("n1") == "0 of 2\n");
  CHECK(on("n2") == "1 of 2\n");
}

TEST_CASE("Srun: a task per rank has the losses of the launcher", "[net][slurm]") {
  const SlurmCluster cluster;
  const fs::path folder = cluster.folder();
  const std::vector<double> expected = launched_losses(folder / "launched");
  RankProcess one_node = srun(cluster, {"-N1", "-n2"}, train(folder / "one"));
  INFO(one_node.read_all());
  CHECK(one_node.wait() == 0);
  CHECK(losses_in(folder / "one") == expected);
  // The names of these nodes are known to SLURM alone.
  RankProcess two_nodes = srun(cluster, {"-N2", "-n2"}, train(folder / "two"),
                               {std::string("MASTER_ADDR=") + SlurmCluster::address});
  INFO(two_nodes.read_all());
  CHECK(two_nodes.wait() == 0);
  CHECK(losses_in(folder / "two") == expected);
  CHECK(fs::is_empty(folder / ".dstrain"));
}

TEST_CASE("Srun: several launchers of one node are refused", "[net][slurm]") {
  const SlurmCluster cluster;
  Words command{DSTRAIN_PROGRAM};
  const Words train = test::train_command(cluster.folder() / "out");
  command.insert(command.end(), train.begin(), train.end());
  RankProcess launchers = srun(cluster, {"-N1", "-n2"}, command);
  const std::string said = launchers.read_all();
  CHECK_THAT(said, ContainsSubstring("SLURM_STEP_NUM_TASKS=2 "));
  CHECK(launchers.wait() != 0);
  CHECK_FALSE(fs::exists(cluster.folder() / "out"));
}
