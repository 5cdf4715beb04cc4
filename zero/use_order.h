#pragma once
#include <optional>

#include "zero/shard_plan.h"

namespace dstrain::zero {

/// The order in which sub-groups are used. It repeats, and is learnt from earlier uses.
class UseOrder {
 public:
  explicit UseOrder(std::size_t sub_groups) : next_(sub_groups) {}
  /// The next use is the first one again.
  void restart() { last_.reset(); }
  void note(SubGroupId sub_group) {
    (last_ ? next_[*last_] : first_) = sub_group;
    last_ = sub_group;
  }
  /// None if it is not known; next() also after the last one.
  [[nodiscard]] std::optional<SubGroupId> first() const { return first_; }
  [[nodiscard]] std::optional<SubGroupId> next(SubGroupId sub_group) const {
    return next_[sub_group];
  }

 private:
  TypedVector<SubGroupId, std::optional<SubGroupId>> next_;
  std::optional<SubGroupId> first_;
  std::optional<SubGroupId> last_;
};

}  // namespace dstrain::zero
