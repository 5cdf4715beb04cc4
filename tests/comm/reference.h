#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/tensor/tensor_view.h"
#include "tests/support/typed_values.h"

namespace dstrain::test {

using Floats = std::vector<float>;

/// Values of one rank whose sums depend on the order: magnitudes from 2^-12 to 2^12, both signs, of
/// 24 bits or, where halves are to hold them, 8.
inline Floats values_of(int rank, std::int64_t numel, DType dtype = DType::f32) {
  Floats values(static_cast<std::size_t>(numel));
  const int bits = is_half(dtype) ? 8 : 24;
  const float unit = std::ldexp(1.0F, -bits);
  std::uint64_t state = 1'000'003 + static_cast<std::uint64_t>(rank);
  for (float& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's, cheap under sanitizers
    const auto word = static_cast<std::uint32_t>(state >> 32);
    const float scale = static_cast<float>(1 << (word % 24)) / 4096.0F;
    value = (static_cast<float>(word >> (32 - bits)) * unit - 0.5F) * scale;
  }
  return values;
}

/// ((x_0 + x_1) + x_2) + ... element by element, each sum rounded to `dtype`.
inline Floats serial_sum(int world, std::int64_t numel, DType dtype = DType::f32) {
  Floats sum = values_of(0, numel, dtype);
  for (int rank = 1; rank < world; ++rank) {
    const Floats term = values_of(rank, numel, dtype);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = rounded(sum[i] + term[i], dtype);
  }
  return sum;
}

inline Floats part(const Floats& whole, std::int64_t begin, std::int64_t numel) {
  return {whole.begin() + begin, whole.begin() + begin + numel};
}

/// Bits, not values: -0 and 0 differ.
inline bool same_bits(const Floats& left, const Floats& right) {
  return left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size() * 4) == 0);
}

inline HostView view(Floats& values) {
  return {values.data(), DType::f32, Shape{static_cast<std::int64_t>(values.size())}};
}

inline HostView view(Floats& values, std::int64_t begin, std::int64_t numel) {
  return {values.data() + begin, DType::f32, Shape{numel}};
}

}  // namespace dstrain::test
