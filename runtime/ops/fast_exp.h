#pragma once
#include <bit>
#include <cstdint>
#include <numbers>

namespace dstrain::ops {

inline constexpr float log2_e = std::numbers::log2e_v<float>;
inline constexpr float ln_2 = std::numbers::ln2_v<float>;

/// Returns 2^x for a float, or for each element of a vector; `Unsigned` is the unsigned integer
/// (vector) of the same size. Accurate to one unit in the last place up to 127, 0 below -126; NaN
/// stays NaN. Has no branches, so that loops over it vectorize.
/// Method: x = n + r, |r| <= 1/2; 2^r by the polynomial of least relative error (3e-9) that gives
/// 2^0 = 1, 2^n by the exponent.
template <class Unsigned, class Float>
[[gnu::always_inline]] constexpr Float fast_exp2_of(Float x) {
  constexpr float round_to_integer = 12582912.0F;  // 1.5 * 2^23: adding it drops the fraction
  const Float shifted = x + round_to_integer;
  const Float r = x - (shifted - round_to_integer);
  Float p = r * 1.55946778e-4F + 1.34066434e-3F;
  p = p * r + 9.61769279e-3F;
  p = p * r + 5.55031039e-2F;
  p = p * r + 2.40226522e-1F;
  p = p * r + 6.93147242e-1F;
  p = p * r + 1.0F;
  // The low bits of `shifted` hold n; moved into the exponent field they scale by 2^n.
  const Unsigned bits = std::bit_cast<Unsigned>(p) + (std::bit_cast<Unsigned>(shifted) << 23U);
  return x < -126.0F ? Float{} : std::bit_cast<Float>(bits);
}

constexpr float fast_exp2(float x) {
  return fast_exp2_of<std::uint32_t>(x);
}

}  // namespace dstrain::ops
