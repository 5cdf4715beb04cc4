#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launcher/plan/options.h"
#include "launcher/plan/resources.h"
#include "runtime/base/result.h"

namespace dstrain::launcher {

/// Where the ranks of an elastic job run for now.
struct ElasticPlan {
  Resources resources;
  std::vector<std::string> idle;  ///< what could work and does not: "w1 slot 3", or "w2" as a whole
};

/// How many of so many ranks can share the job's work; 0: no number of them.
using MostRanks = std::function<std::int64_t(std::int64_t available)>;

/// How many ranks the job has when no host is missing.
int whole_ranks(const Resources& all, const ElasticNodes& nodes);

/// Places ranks on the first hosts of `all` that are not among the `absent` ones, up to the largest
/// number of hosts: as many ranks as `most_ranks` says, the first ones, so that the last slots and
/// hosts idle. A failure says in one line why the job cannot go on with the hosts that are left.
Result<ElasticPlan> plan_elastic(const Resources& all,
                                 const ElasticNodes& nodes,
                                 const std::vector<std::string>& absent,
                                 const MostRanks& most_ranks);

}  // namespace dstrain::launcher
