#pragma once
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/op_state.h"

namespace dstrain::ops::gpu {

// Squares are added as in ops/square_sum.h: eight threads take the eight lanes of a block of 64
// elements, and the sums of blocks are added as integers, in any order.

inline constexpr int square_threads = 256;
inline constexpr int square_lanes = 8;
inline constexpr std::int64_t square_block = 64;
/// Blocks of 64 elements per pass of a thread block.
inline constexpr std::int64_t square_blocks = square_threads / square_lanes;

/// The most thread blocks: each ends with some atomic additions.
inline constexpr std::int64_t square_grid = 132 * 8;

/// A thread's sum of squares.
class LaneSum {
 public:
  DSTRAIN_DEVICE void add(float value) {
    sum_ += static_cast<double>(value) * static_cast<double>(value);
  }
  /// Returns the sum over the eight lanes. All threads of a warp must call.
  DSTRAIN_DEVICE double of_block() const {
    double sum = sum_;
    for (int lanes = square_lanes / 2; lanes > 0; lanes /= 2) sum += shuffle_xor(sum, lanes);
    return sum;
  }
  /// Returns the sum plus that of thread `thread ^ threads`, which has the lane four from this one.
  [[nodiscard]] DSTRAIN_DEVICE double with_other_half(int threads) const {
    return sum_ + shuffle_xor(sum_, threads);
  }

 private:
  double sum_ = 0;
};

/// The place of a 32-bit digit. The two digits of a 64-bit word are in separate arrays.
constexpr std::size_t digit_place(std::uint64_t digit) {
  const auto place = static_cast<std::size_t>(digit);
  return place / 2 + (place % 2 == 0 ? 0 : static_cast<std::size_t>(ExactSum::numel));
}
DSTRAIN_DEVICE std::uint64_t& digit_at(SquareDigits& squares, std::size_t place) {
  return reinterpret_cast<std::uint64_t&>(squares[place]);
}

DSTRAIN_DEVICE void clear(SquareDigits& squares) {
  for (int i = thread(); i < square_digits; i += square_threads) {
    squares[static_cast<std::size_t>(i)] = 0;
  }
}

/// A number as three digits.
struct ThreeDigits {
  std::uint64_t first;  ///< the place of the lowest digit
  std::uint64_t digit[3];
};

DSTRAIN_DEVICE ThreeDigits three_digits(const ExactSum::Term& term) {
  const auto shift = static_cast<int>(term.position % 32);
  const std::uint64_t low = term.mantissa << shift;
  const std::uint64_t high = shift == 0 ? 0 : term.mantissa >> (64 - shift);
  return {term.position / 32, {low & 0xffffffffU, low >> 32U, high}};
}

/// A thread's sum of numbers. Those within a factor of 2^32 of the first are added in registers:
/// neighbors have similar sizes, and atomic additions to one address serialize.
class NearDigits {
 public:
  DSTRAIN_DEVICE void add(double value, SquareDigits& squares) {
    const ExactSum::Term term = ExactSum::term_of(value);
    if (!term.finite) return atomic_add(digit_at(squares, ExactSum::words), 1);
    if (term.mantissa == 0) return;
    const ThreeDigits digits = three_digits(term);
    if (digits.first - first_ > 2) {
      move_to(squares);
      first_ = digits.first - 1;  // may be -1: the digit there stays zero
    }
    const std::uint64_t skipped = digits.first - first_;
#pragma unroll
    for (std::uint64_t i = 0; i < 3; ++i) {
#pragma unroll
      for (std::uint64_t own = i; own < i + 3; ++own) {
        sum_[own] += own == i + skipped ? digits.digit[i] : 0;
      }
    }
  }
  DSTRAIN_DEVICE void move_to(SquareDigits& squares) {
#pragma unroll
    for (std::uint64_t i = 0; i < kept; ++i) {
      if (sum_[i] != 0) atomic_add(digit_at(squares, digit_place(first_ + i)), sum_[i]);
      sum_[i] = 0;
    }
  }

 private:
  static constexpr std::uint64_t kept = 5;
  std::uint64_t first_ = 0;  ///< the place of the lowest digit
  std::uint64_t sum_[kept]{};
};

/// Adds a number to the block's shared digits.
DSTRAIN_DEVICE void add(SquareDigits& squares, double value) {
  NearDigits one;
  one.add(value, squares);
  one.move_to(squares);
}

/// Adds a block's digits to the global ones.
DSTRAIN_DEVICE void add(SquareDigits& all, SquareDigits& own) {
  for (int i = thread(); i < square_digits; i += square_threads) {
    const auto place = static_cast<std::size_t>(i);
    const std::uint64_t digit = digit_at(own, place);
    if (digit != 0) atomic_add(digit_at(all, place), digit);
  }
}

/// For ExactSum::value_by().
struct Ldexp {
  DSTRAIN_ANYWHERE double operator()(double value, int exponent) const {
    return ldexp(value, exponent);
  }
};

/// Copies 64-bit words between shared and global memory.
template <class T>
DSTRAIN_DEVICE void copy_words(const T& from, T& to) {
  const auto* const source = reinterpret_cast<const std::uint64_t*>(&from);
  auto* const target = reinterpret_cast<std::uint64_t*>(&to);
  constexpr int words = sizeof(T) / sizeof(std::uint64_t);
  for (int i = thread(); i < words; i += square_threads) target[i] = source[i];
}

}  // namespace dstrain::ops::gpu
