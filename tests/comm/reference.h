#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/tensor/tensor_view.h"

namespace dstrain::test {

using Floats = std::vector<float>;

/// Values of one rank whose sums depend on the order: magnitudes from 2^-12 to 2^12, both signs.
inline Floats values_of(int rank, std::int64_t numel, std::uint64_t seed = 1) {
  Floats values(static_cast<std::size_t>(numel));
  std::uint64_t state = seed * 1'000'003 + static_cast<std::uint64_t>(rank);
  for (float& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's, cheap under sanitizers
    const auto word = static_cast<std::uint32_t>(state >> 32);
    const float scale = static_cast<float>(1 << (word % 24)) / 4096.0F;
    value = (static_cast<float>(word >> 8) * 0x1.0p-24F - 0.5F) * scale;
  }
  return values;
}

/// ((x_0 + x_1) + x_2) + ... element by element.
inline Floats serial_sum(int world, std::int64_t numel, std::uint64_t seed = 1) {
  Floats sum = values_of(0, numel, seed);
  for (int rank = 1; rank < world; ++rank) {
    const Floats term = values_of(rank, numel, seed);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
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
