#pragma once
#include <cstdint>

#include "runtime/ops/fast_exp.h"

namespace dstrain::ops {

/// Sixteen floats side by side: one AVX-512 register, or several smaller ones. For kernels in which
/// the compiler must not choose what is vectorized. Values of these types stay inside inlined
/// functions, because no register convention for them holds on every x86-64.
typedef float Vector16 __attribute__((vector_size(64)));
typedef std::uint32_t Unsigned16 __attribute__((vector_size(64)));
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

[[gnu::always_inline]] inline Vector16 fast_exp2(Vector16 x) {
  return fast_exp2_of<Unsigned16>(x);
}

}  // namespace dstrain::ops
