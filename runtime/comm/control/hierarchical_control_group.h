#pragma once
#include <memory>

#include "runtime/comm/control/control_group.h"
#include "runtime/comm/control/tree_control_group.h"
#include "runtime/comm/hierarchical/node_map.h"

namespace dstrain::comm {

/// The control group of ranks on several nodes: the ranks of a node share memory, and the first of
/// each are in a tree. It knows no order of ranks: those of a node may lie scattered.
class HierarchicalControlGroup final : public ControlGroup {
 public:
  struct Parts {
    std::unique_ptr<ControlGroup> within;       ///< the ranks of this node, in order
    std::unique_ptr<TreeControlGroup> between;  ///< the first of each node; null on the others
  };
  HierarchicalControlGroup(const NodeMap& map, int rank, Parts parts);
  std::vector<std::string> exchange(const Call& call, std::string_view own) override;
  void abort() noexcept override;

 private:
  std::string exchange_between(const Call& call, const std::vector<std::string>& node);

  Parts parts_;
  std::vector<int> ranks_;  ///< of this node
};

}  // namespace dstrain::comm
