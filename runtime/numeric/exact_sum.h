#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace dstrain {

/// A sum of non-negative doubles without rounding: a fixed-point number wide enough for all of them
/// (a superaccumulator after Kulisch). The order of additions does not matter, so the result does
/// not depend on how the terms are split over threads or ranks. Trivially copyable: ranks exchange
/// it as bytes, and a tensor can hold its `numel` words of 64 bits.
class ExactSum {
 public:
  /// Bits from 2^-1074, the smallest double, up to 2^1024 and 64 more for carries.
  static constexpr std::size_t words = (1074 + 1024 + 64) / 64 + 1;
  static constexpr std::int64_t numel = words + 1;
  /// The digits to base 2^32, each in an integer with room for the sum of 2^31 digits. Ranks add
  /// exact sums as integers and carry once. The lower digits of all words come first, then the
  /// upper ones.
  using Digits = std::array<std::int64_t, 2 * static_cast<std::size_t>(numel)>;

  /// Adds one term. An infinity or a NaN makes the sum NaN.
  constexpr void add(double term);
  constexpr void add(const ExactSum& other);
  /// Adds the sums whose digits were added up.
  constexpr void add(const Digits& digits);
  constexpr void add_to(Digits& digits) const;
  /// The sum as a double, within one unit in the last place; a function of the exact sum alone.
  [[nodiscard]] double value() const;
  /// Does the same with the caller's own std::ldexp, for device code.
  template <class Ldexp>
  [[nodiscard]] constexpr double value_by(Ldexp ldexp) const;

  /// A double that is finite and not negative: mantissa x 2^(position - 1074).
  struct Term {
    std::uint64_t mantissa;
    std::uint64_t position;
    bool finite;
  };
  static constexpr Term term_of(double value);

 private:
  constexpr void add_at(std::size_t word, std::uint64_t value);
  std::array<std::uint64_t, numel> state_{};  ///< little-endian words, then: not finite
};

// Constexpr, so that device code can call it.

constexpr void ExactSum::add_at(std::size_t word, std::uint64_t value) {
  while (value != 0 && word < words) {
    const std::uint64_t before = state_[word];
    state_[word] += value;
    value = state_[word] < before ? 1 : 0;
    ++word;
  }
}

constexpr ExactSum::Term ExactSum::term_of(double value) {
  constexpr std::uint64_t fraction_mask = (std::uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t exponent = (bits >> 52) & 0x7FF;
  const std::uint64_t fraction = bits & fraction_mask;
  if (exponent == 0x7FF) return {0, 0, false};
  if (exponent == 0) return {fraction, 0, true};  // denormals lack the implicit bit
  return {fraction | (fraction_mask + 1), exponent - 1, true};
}

constexpr void ExactSum::add(double term) {
  const auto [mantissa, position, finite] = term_of(term);
  if (!finite) {
    state_[words] = 1;
    return;
  }
  const std::uint64_t shift = position % 64;
  const auto word = static_cast<std::size_t>(position / 64);
  add_at(word, mantissa << shift);
  if (shift > 0) add_at(word + 1, mantissa >> (64 - shift));
}

constexpr void ExactSum::add(const ExactSum& other) {
  for (std::size_t word = 0; word < words; ++word) add_at(word, other.state_[word]);
  state_[words] |= other.state_[words];
}

constexpr void ExactSum::add(const Digits& digits) {
  for (std::size_t word = 0; word < words; ++word) {
    const auto low = static_cast<std::uint64_t>(digits[word]);
    const auto high = static_cast<std::uint64_t>(digits[word + numel]);
    add_at(word, low);
    add_at(word, high << 32);
    add_at(word + 1, high >> 32);
  }
  if (digits[words] != 0) state_[words] = 1;
}

constexpr void ExactSum::add_to(Digits& digits) const {
  for (std::size_t word = 0; word < state_.size(); ++word) {
    digits[word] += static_cast<std::int64_t>(state_[word] & 0xFFFF'FFFF);
    digits[word + numel] += static_cast<std::int64_t>(state_[word] >> 32);
  }
}

template <class Ldexp>
constexpr double ExactSum::value_by(Ldexp ldexp) const {
  if (state_[words] != 0) return std::numeric_limits<double>::quiet_NaN();
  std::size_t top = words;
  while (top > 0 && state_[top - 1] == 0) --top;
  // The three highest words hold at least 129 significant bits. The result is within one unit in
  // the last place and has the same bits everywhere.
  double sum = 0;
  for (std::size_t word = top > 3 ? top - 3 : 0; word < top; ++word) {
    sum += ldexp(static_cast<double>(state_[word]), static_cast<int>(word) * 64 - 1074);
  }
  return sum;
}

}  // namespace dstrain
