#include "tests/support/slurm_cluster.h"

#include <catch2/catch.hpp>

using namespace dstrain;
using test::output_of;

TEST_CASE("Slurm cluster: runs tasks on both nodes", "[net][slurm]") {
  const test::SlurmCluster cluster;
  const auto on = [](const std::string& node) {
    return output_of(
        {"/usr/bin/srun", "-Q", "-N2", "-n2", "/bin/sh", "-c",
         "test $SLURMD_NODENAME != " + node + " || echo $SLURM_PROCID of $SLURM_STEP_NUM_TASKS"});
  };
  CHECK(on("n1") == "0 of 2\n");
  CHECK(on("n2") == "1 of 2\n");
}
