#pragma once
#include <array>
#include <cstdint>

namespace dstrain {

/// A sum of non-negative doubles without rounding: a fixed-point number wide enough for any of
/// them (a superaccumulator after Kulisch). The order of additions does not matter, so a sum
/// whose terms are split over threads or ranks is the same however they are split. Trivially
/// copyable: ranks exchange it as bytes, and its `numel` words of 64 bits may lie in a tensor.
class ExactSum {
 public:
  /// Bits from 2^-1074, the smallest double, up to 2^1024 and 64 more for carries.
  static constexpr std::size_t words = (1074 + 1024 + 64) / 64 + 1;
  static constexpr std::int64_t numel = words + 1;
  /// Its digits to the base of 2^32, each in an integer with room for the sum of 2^31 of them:
  /// ranks add exact sums up as integers, and carry once. The lower ones of all words, then the
  /// upper.
  using Digits = std::array<std::int64_t, 2 * static_cast<std::size_t>(numel)>;

  /// Adds one term. An infinity or a NaN makes the sum NaN.
  void add(double term);
  void add(const ExactSum& other);
  /// The sum of the sums whose digits were added up.
  void add(const Digits& digits);
  void add_to(Digits& digits) const;
  /// The sum as a double, within one unit in the last place; a function of the exact sum alone.
  [[nodiscard]] double value() const;

 private:
  void add_at(std::size_t word, std::uint64_t value);
  std::array<std::uint64_t, numel> state_{};  ///< little-endian words, then: not finite
};

}  // namespace dstrain
