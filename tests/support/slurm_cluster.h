#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {

/// A real SLURM of two nodes, n1 and n2, both on this machine, with 8 processors each as far as it
/// knows. It moves this process, and what that starts from then on, to a network namespace where it
/// has the one address 10.231.7.1 besides loopback, and sets SLURM_CONF: srun, salloc and sbatch
/// then mean this cluster. Nothing of the machine's own network is touched. The daemons and all
/// tasks live in a namespace of processes, which ends with this process, however that ends. (A
/// task's own number is therefore not the one that this process knows it by.)
class SlurmCluster {
 public:
  static constexpr const char* address = "10.231.7.1";

  /// Why this machine cannot have one.
  static std::optional<std::string> refusal();
  /// Ends the test as skipped where there is a refusal(). Throws when the nodes do not come up,
  /// with the daemons' last words.
  SlurmCluster();
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;
  SlurmCluster(SlurmCluster&&) = delete;
  SlurmCluster& operator=(SlurmCluster&&) = delete;
  ~SlurmCluster();

  /// SLURM_CONF=..., for processes that do not inherit this one's environment.
  [[nodiscard]] std::string environment() const;
  /// An empty directory, gone with the cluster.
  [[nodiscard]] std::filesystem::path folder() const;

 private:
  void write_configuration() const;
  void start_daemons();
  void wait_for_nodes() const;
  [[nodiscard]] std::string last_words() const;

  TempDir folder_;
  std::unique_ptr<RankProcess> daemons_;
};

/// What a program prints, run to its end with PATH and SLURM_CONF. Throws when it fails.
std::string output_of(std::vector<std::string> command);

}  // namespace dstrain::test
