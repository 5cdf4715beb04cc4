#include "launcher/plan/placement.h"

#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr int world_size_max = 1 << 20;  // what a rank accepts in WORLD_SIZE

}  // namespace

HostPlan::HostPlan(std::vector<HostSlots> hosts) : hosts_(std::move(hosts)) {
  for (std::size_t node = 0; node < hosts_.size(); ++node) {
    int local_rank = 0;
    for (const int slot : hosts_[node].slots) {
      if (world_size() == world_size_max) {
        fail(ErrorCode::usage, "more than {} ranks; select fewer slots", world_size_max);
      }
      ranks_.push_back({world_size(), static_cast<int>(node), local_rank++, slot});
    }
  }
  if (ranks_.empty()) {
    fail(ErrorCode::usage, "no slot is left to run on; --include or --exclude take them all away");
  }
}

const HostSlots& HostPlan::host_of(const RankPlace& place) const {
  return hosts_.at(static_cast<std::size_t>(place.node_rank));
}

int HostPlan::local_size(const RankPlace& place) const {
  return static_cast<int>(host_of(place).slots.size());
}

}  // namespace dstrain::launcher
