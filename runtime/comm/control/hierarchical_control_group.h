#pragma once
#include <memory>
#include <optional>

#include "runtime/comm/control/shared_control_group.h"
#include "runtime/comm/control/stored_waits.h"
#include "runtime/comm/control/tree_control_group.h"
#include "runtime/comm/hierarchical/node_map.h"

namespace dstrain::comm {

/// The control group of ranks on several nodes: the ranks of a node share memory, and the first of
/// each node are in a tree. Ranks may be in any order: those of a node need not follow each other.
class HierarchicalControlGroup final : public ControlGroup {
 public:
  /// `tcp` are the options of the whole group; `segment` is shared by the ranks of this node. The
  /// store must outlive the group. Waits for the others; throws as connect_mesh().
  HierarchicalControlGroup(Store& store,
                           const TcpOptions& tcp,
                           const NodeMap& map,
                           std::shared_ptr<const Segment> segment);
  void agree(const Call& call) override;
  std::vector<std::string> exchange(const Call& call, std::string_view own) override;
  std::unique_ptr<ControlGroup> split(Communicator::Split split) override;
  void spread(const GroupFailure& failure) noexcept override;
  std::optional<GroupFailure> failure() override;

 private:
  template <class Run>
  auto operate(const Run& run);
  [[nodiscard]] std::string exchange_between(const Call& call,
                                             const std::vector<std::string>& node);

  Store& store_;
  TcpOptions tcp_;
  NodeMap map_;
  std::vector<int> ranks_;  ///< of this node
  int splits_ = 0;
  StoredWaits waits_;
  SharedControlGroup within_;
  std::unique_ptr<TreeControlGroup> between_;  ///< of each node's first rank; null on the others
};

}  // namespace dstrain::comm
