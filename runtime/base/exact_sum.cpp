#include "runtime/base/exact_sum.h"

#include <bit>
#include <cmath>
#include <limits>

namespace dstrain {

void ExactSum::add_at(std::size_t word, std::uint64_t value) {
  while (value != 0 && word < words) {
    const std::uint64_t before = state_[word];
    state_[word] += value;
    value = state_[word] < before ? 1 : 0;
    ++word;
  }
}

void ExactSum::add(double term) {
  if (!std::isfinite(term)) {
    state_[words] = 1;
    return;
  }
  constexpr std::uint64_t fraction_mask = (std::uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(term);
  const std::uint64_t exponent = (bits >> 52) & 0x7FF;
  // A double is mantissa x 2^(position - 1074); denormals lack the implicit bit.
  const std::uint64_t mantissa =
      exponent == 0 ? bits & fraction_mask : (bits & fraction_mask) | (fraction_mask + 1);
  const std::uint64_t position = exponent == 0 ? 0 : exponent - 1;
  const std::uint64_t shift = position % 64;
  const auto word = static_cast<std::size_t>(position / 64);
  add_at(word, mantissa << shift);
  if (shift > 0) add_at(word + 1, mantissa >> (64 - shift));
}

void ExactSum::add(const ExactSum& other) {
  for (std::size_t word = 0; word < words; ++word) add_at(word, other.state_[word]);
  state_[words] |= other.state_[words];
}

void ExactSum::add(const Digits& digits) {
  for (std::size_t word = 0; word < words; ++word) {
    const auto low = static_cast<std::uint64_t>(digits[word]);
    const auto high = static_cast<std::uint64_t>(digits[word + numel]);
    add_at(word, low);
    add_at(word, high << 32);
    add_at(word + 1, high >> 32);
  }
  if (digits[words] != 0) state_[words] = 1;
}

void ExactSum::add_to(Digits& digits) const {
  for (std::size_t word = 0; word < state_.size(); ++word) {
    digits[word] += static_cast<std::int64_t>(state_[word] & 0xFFFF'FFFF);
    digits[word + numel] += static_cast<std::int64_t>(state_[word] >> 32);
  }
}

double ExactSum::value() const {
  if (state_[words] != 0) return std::numeric_limits<double>::quiet_NaN();
  std::size_t top = words;
  while (top > 0 && state_[top - 1] == 0) --top;
  // The three highest words hold at least 129 significant bits: within one unit in the last place,
  // and the same bits everywhere.
  double sum = 0;
  for (std::size_t word = top > 3 ? top - 3 : 0; word < top; ++word) {
    sum += std::ldexp(static_cast<double>(state_[word]), static_cast<int>(word) * 64 - 1074);
  }
  return sum;
}

}  // namespace dstrain
