#pragma once
#include <bit>
#include <cstdint>

namespace dstrain::ops {

/// e^x to about 2 units in the last place, without branches, so that loops over it vectorise.
/// Below -87 the result is about 1e-38 instead of smaller, above 88 about 2e38; NaN stays NaN.
/// Method: x = n ln 2 + r, |r| <= ln 2 / 2; e^r by a polynomial (Cephes expf), 2^n by the exponent.
inline float fast_exp(float x) {
  constexpr float lowest = -87.0F;
  constexpr float highest = 88.0F;
  constexpr float log2_e = 1.44269504F;
  constexpr float round_to_integer = 12582912.0F;  // 1.5 * 2^23: adding it drops the fraction
  constexpr float ln2_high = 0.693359375F;         // few bits: n * ln2_high is exact
  constexpr float ln2_low = -2.12194440e-4F;
  x = lowest > x ? lowest : x;
  x = highest < x ? highest : x;
  const float shifted = x * log2_e + round_to_integer;
  const float n = shifted - round_to_integer;
  const float r = (x - n * ln2_high) - n * ln2_low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float fraction = (p * (r * r) + r) + 1.0F;
  // The low bits of `shifted` hold n; moved into the exponent field they scale by 2^n.
  const auto exponent = std::bit_cast<std::uint32_t>(shifted) << 23U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(fraction) + exponent);
}

}  // namespace dstrain::ops
