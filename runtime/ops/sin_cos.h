#pragma once
#include <cstdint>
#include <numbers>

namespace dstrain::ops {

struct SinCos {
  float sine;
  float cosine;
};

/// Accurate to about 1e-7 for angles of fewer than 2^30 quarter turns: the remainder of a quarter
/// turn is computed in double, then the polynomials of Cephes (Moshier, sinf.c) follow.
constexpr SinCos sin_cos(float angle) {
  constexpr double quarters_per_radian = 2.0 / std::numbers::pi;
  constexpr double round_to_integer = 6755399441055744.0;  // 1.5 * 2^52: adding drops the fraction
  const double shifted = static_cast<double>(angle) * quarters_per_radian + round_to_integer;
  const double quarters = shifted - round_to_integer;
  const auto r =
      static_cast<float>(static_cast<double>(angle) - quarters * (std::numbers::pi / 2.0));
  const auto quadrant = static_cast<std::int32_t>(quarters);
  const float z = r * r;
  const float sine =
      r + r * z * (-1.6666654611e-1F + z * (8.3321608736e-3F - 1.9515295891e-4F * z));
  const float cosine =
      1.0F - 0.5F * z +
      z * z * (4.166664568298827e-2F + z * (-1.388731625493765e-3F + z * 2.443315711809948e-5F));
  const bool swapped = (quadrant & 1) != 0;
  const float s = swapped ? cosine : sine;
  const float c = swapped ? sine : cosine;
  return {(quadrant & 2) != 0 ? -s : s, ((quadrant + 1) & 2) != 0 ? -c : c};
}

}  // namespace dstrain::ops
