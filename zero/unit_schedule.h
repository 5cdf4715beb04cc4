#pragma once
#include <cstdint>
#include <span>

namespace dstrain::zero {

/// Which units are acquired next, as far as they are known: see ParameterStore::expect().
class UnitSchedule {
 public:
  static constexpr int unknown = -1;

  void expect(std::span<const int> units, std::int64_t rounds) {
    units_ = units;
    left_ = static_cast<std::int64_t>(units.size()) * rounds;
    next_ = 0;
  }
  /// `unit` is acquired. If another was expected, nothing is known any more.
  void advance(int unit) {
    if (upcoming(0) != unit) left_ = 0;
    if (left_ == 0) return;
    --left_;
    next_ = (next_ + 1) % units_.size();
  }
  /// The unit that will be acquired after `skipped` others.
  [[nodiscard]] int upcoming(std::int64_t skipped) const {
    if (skipped >= left_) return unknown;
    return units_[(next_ + static_cast<std::size_t>(skipped)) % units_.size()];
  }

 private:
  std::span<const int> units_;
  std::int64_t left_ = 0;
  std::size_t next_ = 0;
};

}  // namespace dstrain::zero
