#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "launcher/plan/options.h"
#include "launcher/plan/resources.h"
#include "runtime/base/result.h"

namespace dstrain::launcher {

/// Where the ranks of an elastic job run for now.
struct ElasticPlan {
  Resources resources;
  /// Slots ("w1 slot 3") and whole hosts ("w2") that have no share of the batch, and hosts beyond
  /// the largest number of hosts.
  std::vector<std::string> idle;
  std::vector<std::string> spare;

  /// Both: slots and hosts that could work but do not.
  [[nodiscard]] std::vector<std::string> without_ranks() const;
};

/// The most ranks, of those available, that can share the job's work; 0: no number can.
using MostRanks = std::function<std::int64_t(std::int64_t available)>;

/// How many ranks the job has when no host is missing.
int whole_ranks(const Resources& all, const ElasticNodes& nodes);

/// Places ranks on the first hosts of `all` that are not among the `absent` ones, up to the largest
/// number of hosts, beyond which they are spare: as many ranks as `most_ranks` says, the first
/// ones, so that the last slots and hosts idle. A failure says in one line why the job cannot
/// continue on the hosts that are left.
Result<ElasticPlan> plan_elastic(const Resources& all,
                                 const ElasticNodes& nodes,
                                 const std::vector<std::string>& absent,
                                 const MostRanks& most_ranks);

/// Two hosts of which one cannot reach the other, in the order of their ranks.
struct HostPair {
  std::string first;
  std::string second;
  bool operator==(const HostPair&) const = default;
};

/// The host that is in the most of these pairs; of equals, the later one. `apart` is not empty.
std::string host_to_leave_out(std::span<const HostPair> apart);

/// The slots and hosts without ranks and why, a line for each cause.
std::vector<std::string> describe_idle(const ElasticPlan& plan, const ElasticNodes& nodes);

}  // namespace dstrain::launcher
