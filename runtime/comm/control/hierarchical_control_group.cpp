#include "runtime/comm/control/hierarchical_control_group.h"

#include <algorithm>

#include "runtime/comm/packed_texts.h"

namespace dstrain::comm {
namespace {

GroupBarrier::Options within_options(const TcpOptions& tcp,
                                     const std::vector<int>& ranks,
                                     StoredWaits& waits) {
  return {.rank = static_cast<int>(std::ranges::find(ranks, tcp.rank) - ranks.begin()),
          .timeout_seconds = tcp.timeout_seconds,
          .names = ranks,
          .waits = &waits};
}

TreeControlGroup::Options between_options(const TcpOptions& tcp, const NodeMap& map) {
  TreeControlGroup::Options options{.tcp = tcp};
  options.tcp.rank = map.node_of(tcp.rank);
  options.tcp.size = static_cast<int>(map.nodes.size());
  for (const std::vector<int>& ranks : map.nodes) options.tcp.names.push_back(ranks.front());
  return options;
}

/// Returns the nodes of a subgroup, with ranks numbered as in it.
NodeMap map_of_part(const NodeMap& map, const SplitPlan& plan) {
  NodeMap part;
  part.nodes.resize(map.nodes.size());
  for (std::size_t rank = 0; rank < plan.members.size(); ++rank) {
    const auto node = static_cast<std::size_t>(map.node_of(plan.members[rank]));
    part.nodes[node].push_back(static_cast<int>(rank));
  }
  std::erase_if(part.nodes, [](const std::vector<int>& ranks) { return ranks.empty(); });
  std::ranges::sort(part.nodes);
  return part;
}

}  // namespace

HierarchicalControlGroup::HierarchicalControlGroup(Store& store,
                                                   const TcpOptions& tcp,
                                                   const NodeMap& map,
                                                   std::shared_ptr<const Segment> segment)
    : ControlGroup({tcp.rank, tcp.size}),
      store_(store),
      tcp_(tcp),
      map_(map),
      ranks_(map.nodes[static_cast<std::size_t>(map.node_of(tcp.rank))]),
      waits_(store, tcp.name, {tcp.rank, tcp.size}),
      within_(std::move(segment), within_options(tcp, ranks_, waits_)) {
  if (within_.rank() != 0) return;
  TreeControlGroup::Options options = between_options(tcp_, map_);
  options.waits = &waits_;
  options.within = &within_;
  between_ = std::make_unique<TreeControlGroup>(store_, std::move(options));
}

/// Makes a failure within the node or between nodes one of all ranks.
template <class Run>
auto HierarchicalControlGroup::operate(const Run& run) {
  waits_.begin();
  try {
    return run();
  } catch (const Error& error) {
    spread(failure().value_or(GroupFailure{error.code(), error.what()}));
    throw;
  }
}

void HierarchicalControlGroup::agree(const Call& call) {
  operate([&] {
    within_.agree(call);
    if (between_) between_->agree(call);
    within_.agree(call);
  });
}

std::vector<std::string> HierarchicalControlGroup::exchange(const Call& call,
                                                            std::string_view own) {
  return operate([&] {
    const std::vector<std::string> node = within_.exchange(call, own);
    return unpack_texts(within_.broadcast(between_ ? exchange_between(call, node) : "", 0), size());
  });
}

std::string HierarchicalControlGroup::exchange_between(const Call& call,
                                                       const std::vector<std::string>& node) {
  std::string packed;
  for (std::size_t i = 0; i < node.size(); ++i) pack_text(packed, ranks_[i], node[i]);
  std::string all;
  for (const std::string& text : between_->exchange(call, packed)) all += text;
  return all;
}

std::unique_ptr<ControlGroup> HierarchicalControlGroup::split(Communicator::Split split) {
  const SplitPlan plan = plan_split(gather(split), rank());
  SharedControlGroup::SplitMemory part = within_.split_memory(split);
  const NodeMap map = map_of_part(map_, plan);
  if (map.nodes.size() == 1) {
    return std::make_unique<SharedControlGroup>(
        std::move(part.segment),
        GroupBarrier::Options{.rank = plan.rank, .timeout_seconds = tcp_.timeout_seconds});
  }
  TcpOptions tcp = tcp_;
  tcp.rank = plan.rank;
  tcp.size = static_cast<int>(plan.members.size());
  tcp.name += fmt::format("/{}.{}", splits_++, plan.members.front());
  return std::make_unique<HierarchicalControlGroup>(store_, tcp, map, std::move(part.segment));
}

void HierarchicalControlGroup::spread(const GroupFailure& failure) noexcept {
  within_.spread(failure);
  if (between_) between_->spread(failure);
  waits_.tell(failure);
}

/// Forwards failures from other nodes to this one, and from this one to them.
std::optional<GroupFailure> HierarchicalControlGroup::failure() {
  if (auto known = within_.failure()) {
    if (between_) between_->spread(*known);
    return known;
  }
  std::optional<GroupFailure> found;
  if (between_) found = between_->failure();
  if (!found) found = waits_.look();
  if (found) spread(*found);
  return found;
}

}  // namespace dstrain::comm
