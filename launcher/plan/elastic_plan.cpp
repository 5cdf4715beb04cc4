#include "launcher/plan/elastic_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dstrain::launcher {
namespace {

std::size_t most_hosts(const Resources& all, const ElasticNodes& nodes) {
  const std::size_t hosts = all.plan.hosts().size();
  return nodes.max == 0 ? hosts : std::min(hosts, static_cast<std::size_t>(nodes.max));
}

std::size_t count_slots(const std::vector<HostSlots>& hosts) {
  std::size_t slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots.size();
  return slots;
}

/// Removes slots from the end until `ranks` are left; returns the removed slots and hosts, in
/// order.
std::vector<std::string> leave_slots(std::vector<HostSlots>& hosts, std::size_t ranks) {
  std::vector<std::string> idle;
  std::size_t excess = count_slots(hosts) - ranks;
  while (excess > 0) {
    HostSlots& last = hosts.back();
    if (excess >= last.slots.size()) {
      excess -= last.slots.size();
      idle.push_back(last.host);
      hosts.pop_back();
      continue;
    }
    for (; excess > 0; --excess) {
      idle.push_back(fmt::format("{} slot {}", last.host, last.slots.back()));
      last.slots.pop_back();
    }
  }
  std::ranges::reverse(idle);
  return idle;
}

}  // namespace

std::vector<std::string> ElasticPlan::without_ranks() const {
  std::vector<std::string> all = idle;
  all.insert(all.end(), spare.begin(), spare.end());
  return all;
}

int whole_ranks(const Resources& all, const ElasticNodes& nodes) {
  std::vector<HostSlots> hosts = all.plan.hosts();
  hosts.resize(most_hosts(all, nodes));
  return static_cast<int>(count_slots(hosts));
}

Result<ElasticPlan> plan_elastic(const Resources& all,
                                 const ElasticNodes& nodes,
                                 const std::vector<std::string>& absent,
                                 const MostRanks& most_ranks) {
  std::vector<HostSlots> hosts;
  std::vector<bool> remote;
  std::vector<std::string> spare;
  for (std::size_t i = 0; i < all.plan.hosts().size(); ++i) {
    const HostSlots& host = all.plan.hosts()[i];
    if (std::ranges::find(absent, host.host) != absent.end()) continue;
    if (hosts.size() == most_hosts(all, nodes)) {
      spare.push_back(host.host);
      continue;
    }
    hosts.push_back(host);
    remote.push_back(all.remote[i]);
  }
  if (hosts.size() < static_cast<std::size_t>(nodes.min)) {
    return Failure{fmt::format("{} of {} hosts are left, but --min_elastic_nodes is {}",
                               hosts.size(), all.plan.hosts().size(), nodes.min)};
  }
  const auto slots = static_cast<std::int64_t>(count_slots(hosts));
  const std::int64_t ranks = most_ranks(slots);
  if (ranks < 1) {
    return Failure{fmt::format("no number of ranks up to {} can share the global batch", slots)};
  }
  ElasticPlan plan{all, leave_slots(hosts, static_cast<std::size_t>(ranks)), std::move(spare)};
  remote.resize(hosts.size());
  plan.resources.plan = HostPlan(std::move(hosts));
  plan.resources.remote = std::move(remote);
  return plan;
}

std::string host_to_leave_out(std::span<const HostPair> apart) {
  const auto pairs_with = [&](const std::string& host) {
    return std::ranges::count_if(
        apart, [&](const HostPair& pair) { return pair.first == host || pair.second == host; });
  };
  std::string most = apart.front().second;
  for (const HostPair& pair : apart) {
    for (const std::string& host : {pair.second, pair.first}) {
      if (pairs_with(host) > pairs_with(most)) most = host;
    }
  }
  return most;
}

std::vector<std::string> describe_idle(const ElasticPlan& plan, const ElasticNodes& nodes) {
  std::vector<std::string> lines;
  if (!plan.idle.empty()) {
    const int ranks = plan.resources.plan.world_size();
    lines.push_back(fmt::format("idle, because {} {} the batch: {}", ranks,
                                ranks == 1 ? "rank has" : "ranks share",
                                fmt::join(plan.idle, ", ")));
  }
  if (!plan.spare.empty()) {
    lines.push_back(fmt::format("spare, because --max_elastic_nodes is {}: {}", nodes.max,
                                fmt::join(plan.spare, ", ")));
  }
  return lines;
}

}  // namespace dstrain::launcher
