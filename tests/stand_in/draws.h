#pragma once
#include <cstddef>
#include <optional>
#include <random>
#include <utility>

namespace dstrain::stand_in {

/// What a GPU leaves open is drawn from this: in which order the blocks of a grid run, the warps of
/// a block and the threads of a warp between two points where they meet; whether an asynchronous
/// copy of a thread comes early; whether a stream is late with a task. DSTRAIN_STAND_IN_SEED says
/// which draws these are. Each launch takes its own when it is given over, in the order in which
/// the host launches, so that a seed repeats what it did. Without the variable nothing is drawn:
/// all goes in ascending order, and streams do what they are given at once.
class Draws {
 public:
  /// Of the next launch, by the variable as it is now.
  static Draws next();
  [[nodiscard]] bool drawn() const { return random_.has_value(); }
  /// Where nothing is drawn, 0.
  [[nodiscard]] std::size_t below(std::size_t bound);
  [[nodiscard]] bool one_in(std::size_t count) { return drawn() && below(count) == 0; }
  /// Where nothing is drawn, they stay as they are.
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
