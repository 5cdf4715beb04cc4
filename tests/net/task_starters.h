#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/launch_process.h"
#include "tests/support/slurm_cluster.h"

namespace dstrain::test {

/// Two nodes of a real SLURM with an allocation for 3 tasks, two on n1 and one on n2, or mpirun, or
/// mpiexec, on this machine: what `--launcher` may name. Ends the test as skipped where it cannot
/// be had.
class TaskStarterUnderTest {
 public:
  /// "slurm", "openmpi" or "mpich".
  explicit TaskStarterUnderTest(const std::string& launcher);

  /// The launch options for 3 ranks.
  [[nodiscard]] std::vector<std::string> options() const;
  /// The same, and a shell's script as the program.
  [[nodiscard]] std::vector<std::string> shell(const std::string& script,
                                               const std::vector<std::string>& more = {}) const;
  /// That a launcher has within the allocation, or needs.
  [[nodiscard]] const std::vector<launcher::EnvVar>& environment() const { return environment_; }
  /// SLURM's number of the allocation.
  [[nodiscard]] const std::string& job() const { return job_; }

 private:
  std::string launcher_;
  std::unique_ptr<SlurmCluster> cluster_;
  std::string job_;
  std::vector<launcher::EnvVar> environment_;
};

/// Each in turn, as Catch's GENERATE. The last one: where it cannot be had, the test is skipped
/// when the others have passed.
std::string any_task_launcher();

}  // namespace dstrain::test
