#pragma once
#include <cstddef>
#include <optional>
#include <random>
#include <utility>

namespace dstrain::stand_in {

/// Random choices where a GPU guarantees nothing: the order of the blocks of a grid, and of the
/// warps of a block and the threads of a warp between synchronization points; whether an
/// asynchronous copy arrives early; whether a stream starts a task late. DSTRAIN_STAND_IN_SEED is
/// the seed. Each launch gets its own draws in the order in which the host launches, so a seed
/// repeats a run. Without the variable nothing is drawn: everything runs in ascending order, and
/// streams start tasks at once.
class Draws {
 public:
  /// Returns the draws of the next launch, by the variable's current value.
  static Draws next();
  [[nodiscard]] bool drawn() const { return random_.has_value(); }
  /// Returns 0 if nothing is drawn.
  [[nodiscard]] std::size_t below(std::size_t bound);
  [[nodiscard]] bool one_in(std::size_t count) { return drawn() && below(count) == 0; }
  /// Keeps the order if nothing is drawn.
  template <class Values>
  void shuffle(Values& values) {
    if (!drawn()) return;
    for (std::size_t left = values.size(); left > 1; --left) {
      std::swap(values[left - 1], values[below(left)]);
    }
  }

 private:
  std::optional<std::mt19937_64> random_;
};

}  // namespace dstrain::stand_in
