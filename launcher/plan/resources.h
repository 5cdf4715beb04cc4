#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/allocation.h"
#include "launcher/plan/hostfile.h"
#include "launcher/plan/machine.h"
#include "launcher/plan/options.h"
#include "launcher/plan/selection.h"
#include "launcher/plan/task_launcher.h"

namespace dstrain::launcher {

/// Where one rank runs.
struct RankAssignment {
  int rank = 0;
  int node_rank = 0;   ///< index of its host in the plan
  int local_rank = 0;  ///< counts from 0 within its node, whatever the slots' numbers
  int slot = 0;
};

/// The table rank <-> host <-> slot of a job. Ranks are numbered host by host in the order of the
/// hostfile, and by slot within a host.
class HostPlan {
 public:
  /// Throws Error{usage} when there is nothing to run on, or more ranks than a job may have.
  explicit HostPlan(std::vector<HostSlots> hosts);

  [[nodiscard]] int world_size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const std::vector<HostSlots>& hosts() const { return hosts_; }
  [[nodiscard]] const std::vector<RankAssignment>& ranks() const { return ranks_; }
  [[nodiscard]] const HostSlots& host_of(const RankAssignment& rank) const;
  /// How many ranks run on the node of `rank`.
  [[nodiscard]] int local_size(const RankAssignment& rank) const;

 private:
  std::vector<HostSlots> hosts_;
  std::vector<RankAssignment> ranks_;
};

/// Where the ranks of a job run, with warnings for the user.
struct Resources {
  HostPlan plan;
  std::vector<bool> remote;      ///< for each host: whether it is reached over the network
  std::optional<int> node_rank;  ///< --no_ssh: the host whose ranks this launcher starts
  std::optional<TaskLauncher> task_launcher;  ///< starts a task per rank, if one does
  std::vector<std::string> warnings;

  /// Whether a task may be shown GPUs of its own instead of its node's, as by SLURM.
  [[nodiscard]] bool tasks_have_gpus() const { return task_launcher == TaskLauncher::slurm; }
  /// As --launcher names it.
  [[nodiscard]] std::string launcher() const;
};

/// What the ranks of a job compute with.
enum class RankDevice {
  any,      ///< slots are GPUs if there are any
  cpu_only  ///< slots are CPU ranks: typed slots on a machine with GPUs need --device cpu
};

/// The typed file, or /job/hostfile if it exists, or none.
std::optional<std::filesystem::path> hostfile_path(const LaunchOptions& options);

/// The hosts of that file. Throws Error{input} when a typed file is missing.
std::optional<std::vector<HostEntry>> find_hostfile(const LaunchOptions& options);

/// The sources of hosts: the hostfile, else the allocation for the launchers that use it.
struct HostOffers {
  std::optional<std::vector<HostEntry>> hostfile;
  std::optional<Allocation> allocation;
};

/// Turns options, machine and hosts into a table of ranks, by DeepSpeed's order of resolution.
/// Throws Error{usage} for options that contradict each other or ask for what is not there. Does
/// not look at the GPUs of other machines.
Resources resolve_resources(const LaunchOptions& options,
                            const Machine& machine,
                            const HostOffers& offers,
                            RankDevice rank_device);

}  // namespace dstrain::launcher
