#pragma once
#include <cstdint>

namespace dstrain::ops {

/// Sixteen floats side by side: one AVX-512 register, or several smaller ones. For kernels in which
/// the compiler must not choose what runs in lanes. Values of these types stay inside inline
/// functions: no register convention for them holds on every x86-64.
typedef float Vector16 __attribute__((vector_size(64)));
typedef std::int32_t Integers16 __attribute__((vector_size(64)));
typedef float Memory16 __attribute__((vector_size(64), aligned(4), may_alias));

[[gnu::always_inline]] inline Vector16 load16(const float* values) {
  return *reinterpret_cast<const Memory16*>(values);
}

[[gnu::always_inline]] inline void store16(float* values, Vector16 vector) {
  *reinterpret_cast<Memory16*>(values) = vector;
}

[[gnu::always_inline]] inline Vector16 larger(Vector16 a, Vector16 b) {
  return a > b ? a : b;
}

/// 2^x to about 2 units in the last place for x up to 127; 0 below -126; NaN stays NaN.
/// Method: x = n + r, |r| <= 1/2; 2^r by the polynomial of least relative error (7.5e-8), 2^n by
/// the exponent.
[[gnu::always_inline]] inline Vector16 fast_exp2(Vector16 x) {
  constexpr float round_to_integer = 12582912.0F;  // 1.5 * 2^23: adding it drops the fraction
  const Vector16 shifted = x + round_to_integer;
  const Vector16 r = x - (shifted - round_to_integer);
  Vector16 p = r * 1.32764725e-3F + 9.67554096e-3F;
  p = p * r + 5.55071309e-2F;
  p = p * r + 2.40221202e-1F;
  p = p * r + 6.93146944e-1F;
  p = p * r + 1.00000012F;
  // The low bits of `shifted` hold n; moved into the exponent field they scale by 2^n.
  const Integers16 bits =
      reinterpret_cast<Integers16>(p) + (reinterpret_cast<Integers16>(shifted) << 23);
  return x < -126.0F ? Vector16{} : reinterpret_cast<Vector16>(bits);
}

}  // namespace dstrain::ops
