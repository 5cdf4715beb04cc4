#pragma once
#include <optional>
#include <vector>

namespace dstrain::zero {

/// The order in which runs are used, the same each time, as learnt from uses so far.
class RunOrder {
 public:
  explicit RunOrder(std::size_t runs) : next_(runs) {}
  /// The next use is the first one again.
  void restart() { last_.reset(); }
  void note(int run) {
    (last_ ? next_[static_cast<std::size_t>(*last_)] : first_) = run;
    last_ = run;
  }
  /// None when it is not known; of `next` also after the last one.
  [[nodiscard]] std::optional<int> first() const { return first_; }
  [[nodiscard]] std::optional<int> next(int run) const {
    return next_[static_cast<std::size_t>(run)];
  }

 private:
  std::vector<std::optional<int>> next_;
  std::optional<int> first_;
  std::optional<int> last_;
};

}  // namespace dstrain::zero
