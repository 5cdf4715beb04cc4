#pragma once
#include <string>
#include <vector>

#include "launcher/plan/selection.h"

namespace dstrain::launcher {

/// Where one rank runs.
struct RankPlace {
  int rank = 0;
  int node_rank = 0;   ///< index of its host in the plan
  int local_rank = 0;  ///< counts from 0 within its node, whatever the slots are called
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
  [[nodiscard]] const std::vector<RankPlace>& ranks() const { return ranks_; }
  [[nodiscard]] const HostSlots& host_of(const RankPlace& place) const;
  /// How many ranks run on the node of `place`.
  [[nodiscard]] int local_size(const RankPlace& place) const;

 private:
  std::vector<HostSlots> hosts_;
  std::vector<RankPlace> ranks_;
};

}  // namespace dstrain::launcher
