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
  /// Who has no share of the batch, "w1 slot 3", or "w2" as a whole, and who is beyond the largest
  /// number of hosts.
  std::vector<std::string> idle;
  std::vector<std::string> spare;

  /// Both: what could work and does not.
  [[nodiscard]] std::vector<std::string> without_ranks() const;
};

/// How many of so many ranks can share the job's work; 0: no number of them.
using MostRanks = std::function<std::int64_t(std::int64_t available)>;

/// How many ranks the job has when no host is missing.
int whole_ranks(const Resources& all, const ElasticNodes& nodes);

/// Places ranks on the first hosts of `all` that are not among the `absent` ones, up to the largest
/// number of hosts, beyond which they are spare: as many ranks as `most_ranks` says, the first
/// ones, so that the last slots and hosts idle. A failure says in one line why the job cannot go on
/// with the hosts that are left.
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

/// The one without which the most of these pairs are gone; of equals the later. There are some.
std::string host_to_leave_out(std::span<const HostPair> apart);

/// Who of the plan does not work and why, a line for each cause.
std::vector<std::string> describe_idle(const ElasticPlan& plan, const ElasticNodes& nodes);

}  // namespace dstrain::launcher
