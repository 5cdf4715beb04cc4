#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace dstrain::profile {

/// Keeps the last `capacity` values pushed. Allocates all its memory at once.
template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : values_(capacity) {}

  void push(const T& value) { values_[place(pushed_++)] = value; }
  void clear() { pushed_ = 0; }
  /// Returns how many values were pushed so far; those from first_kept() on are still there.
  [[nodiscard]] std::int64_t pushed() const { return pushed_; }
  [[nodiscard]] std::int64_t first_kept() const {
    return std::max<std::int64_t>(0, pushed_ - static_cast<std::int64_t>(values_.size()));
  }
  /// Returns value `index`, counting all that were pushed.
  [[nodiscard]] const T& operator[](std::int64_t index) const { return values_[place(index)]; }
  /// Returns the kept values, oldest first.
  [[nodiscard]] std::vector<T> kept() const {
    std::vector<T> all;
    for (std::int64_t i = first_kept(); i < pushed_; ++i) all.push_back((*this)[i]);
    return all;
  }

 private:
  [[nodiscard]] std::size_t place(std::int64_t index) const {
    return static_cast<std::size_t>(index) % values_.size();
  }
  std::vector<T> values_;
  std::int64_t pushed_ = 0;
};

}  // namespace dstrain::profile
