#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/hostfile.h"
#include "launcher/plan/machine.h"
#include "launcher/plan/options.h"
#include "launcher/plan/placement.h"

namespace dstrain::launcher {

/// Where the ranks of a job run, and what the user should know about it.
struct Resources {
  HostPlan plan;
  std::vector<bool> remote;      ///< for each host: whether it is reached over the network
  std::optional<int> node_rank;  ///< --no_ssh: the host whose ranks this launcher starts
  std::vector<std::string> warnings;

  /// "ssh" or "local".
  [[nodiscard]] std::string launcher() const;
};

/// What the ranks of a job compute with.
enum class RankDevice {
  any,      ///< slots are GPUs where there are some
  cpu_only  ///< slots are CPU ranks: who typed slots where there are GPUs must say so (--device)
};

/// The hostfile's hosts: the file that was typed, or /job/hostfile when there is one, or none.
/// Throws Error{input} when a typed file is missing.
std::optional<std::vector<HostEntry>> find_hostfile(const LaunchOptions& options);

/// Turns options, machine and hostfile into a table of ranks, by DeepSpeed's order of resolution.
/// Throws Error{usage} for options that contradict each other or ask for what is not there.
/// GPUs of other machines are not looked at.
Resources resolve_resources(const LaunchOptions& options,
                            const Machine& machine,
                            const std::optional<std::vector<HostEntry>>& hostfile,
                            RankDevice rank_device);

}  // namespace dstrain::launcher
