#pragma once
#include <optional>
#include <vector>

namespace dstrain::zero {

/// The order in which sub-groups are used, the same each time, as learnt from uses so far.
class UseOrder {
 public:
  explicit UseOrder(std::size_t groups) : next_(groups) {}
  /// The next use is the first one again.
  void restart() { last_.reset(); }
  void note(int group) {
    (last_ ? next_[static_cast<std::size_t>(*last_)] : first_) = group;
    last_ = group;
  }
  /// None when it is not known; of `next` also after the last one.
  [[nodiscard]] std::optional<int> first() const { return first_; }
  [[nodiscard]] std::optional<int> next(int group) const {
    return next_[static_cast<std::size_t>(group)];
  }

 private:
  std::vector<std::optional<int>> next_;
  std::optional<int> first_;
  std::optional<int> last_;
};

}  // namespace dstrain::zero
