#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"

namespace dstrain::ops {

// Blocks of 16 x 16 elements in vector registers, for kernels marked DSTRAIN_SIMD_CLONES: loads
// widen bf16 and f16 to f32, stores round. Everything is inlined, so each clone gets its own
// instructions.

using Floats16 = float __attribute__((vector_size(64)));
using Words16 = std::uint32_t __attribute__((vector_size(64)));
using Signed16 = std::int32_t __attribute__((vector_size(64)));
using Halves16 = std::uint16_t __attribute__((vector_size(32)));

#define DSTRAIN_INLINE inline __attribute__((always_inline))

/// The elements rounded to bf16, each in the upper half of its word.
DSTRAIN_INLINE void round_bits(const Floats16& value, Words16& rounded) {
  const Words16 bits = (Words16)value;
  const Words16 nearest = bits + 0x7fffU + ((bits >> 16) & 1U);
  const Words16 nan = (Words16)((bits & 0x7fffffffU) > 0x7f800000U);
  rounded = ((nearest & ~nan) | ((bits | 0x400000U) & nan)) & 0xffff0000U;
}

// Float16's conversions, on vectors.

DSTRAIN_INLINE void widen_f16(const Halves16& halves, Floats16& to) {
  const Words16 words = __builtin_convertvector(halves, Words16);
  const Words16 magnitude = words & 0x7fffU;
  const Words16 normal = (magnitude << 13) + 0x38000000U;
  const Floats16 tiny = __builtin_convertvector((Signed16)magnitude, Floats16) * 0x1p-24F;
  const Words16 finite = magnitude < 0x400U ? (Words16)tiny : normal;
  const Words16 bits = magnitude >= 0x7c00U ? normal + 0x38000000U : finite;
  to = (Floats16)(bits | ((words & 0x8000U) << 16));
}

DSTRAIN_INLINE void round_f16(const Floats16& value, Halves16& rounded) {
  const Words16 all = (Words16)value;
  const Words16 magnitude = all & 0x7fffffffU;
  const Words16 normal = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  const Words16 tiny = (Words16)((Floats16)magnitude + 0.5F) - 0x3f000000U;
  const Words16 finite = magnitude < 0x38800000U ? tiny : normal;
  const Words16 nan = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  const Words16 special = magnitude > 0x7f800000U ? nan : (nan & 0U) | 0x7c00U;
  const Words16 bits = magnitude >= 0x47800000U ? special : finite;
  rounded = __builtin_convertvector(bits | ((all >> 16) & 0x8000U), Halves16);
}

DSTRAIN_INLINE void load16(const std::byte* from, DType dtype, Floats16& to) {
  if (dtype == DType::f32) {
    std::memcpy(&to, from, 64);
    return;
  }
  Halves16 halves;
  std::memcpy(&halves, from, 32);
  if (dtype == DType::f16) return widen_f16(halves, to);
  to = (Floats16)(__builtin_convertvector(halves, Words16) << 16);
}

DSTRAIN_INLINE void store16(const Floats16& from, DType dtype, std::byte* to) {
  if (dtype == DType::f32) {
    std::memcpy(to, &from, 64);
    return;
  }
  Halves16 halves;
  if (dtype == DType::f16) {
    round_f16(from, halves);
  } else {
    Words16 rounded;
    round_bits(from, rounded);
    halves = __builtin_convertvector(rounded >> 16, Halves16);
  }
  std::memcpy(to, &halves, 32);
}

/// The same for the first `count` elements; loads make the others zero.
DSTRAIN_INLINE void load_some(const std::byte* from,
                              DType dtype,
                              std::int64_t count,
                              Floats16& to) {
  alignas(64) std::byte whole[64] = {};
  std::memcpy(whole, from, static_cast<std::size_t>(count * size_of(dtype)));
  load16(whole, dtype, to);
}

DSTRAIN_INLINE void store_some(const Floats16& from,
                               DType dtype,
                               std::int64_t count,
                               std::byte* to) {
  alignas(64) std::byte whole[64];
  store16(from, dtype, whole);
  std::memcpy(to, whole, static_cast<std::size_t>(count * size_of(dtype)));
}

/// Swaps the upper row's odd blocks of `width` elements with the lower row's even ones.
template <std::size_t width, std::size_t... lane>
DSTRAIN_INLINE void swap_row_blocks(Floats16& upper,
                                    Floats16& lower,
                                    std::index_sequence<lane...> /*lanes*/) {
  const Floats16 both =
      __builtin_shufflevector(upper, lower, ((lane & width) == 0 ? lane : 16 + lane - width)...);
  lower =
      __builtin_shufflevector(upper, lower, ((lane & width) == 0 ? lane + width : 16 + lane)...);
  upper = both;
}

/// One step of the transposition: swaps the off-diagonal blocks of `width` elements.
template <std::size_t width>
DSTRAIN_INLINE void swap_blocks(Floats16* rows) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) {
    if ((i & width) != 0) continue;
    swap_row_blocks<width>(rows[i], rows[i + width], std::make_index_sequence<16>());
  }
}

DSTRAIN_INLINE void transpose16(Floats16* rows) {
  swap_blocks<8>(rows);
  swap_blocks<4>(rows);
  swap_blocks<2>(rows);
  swap_blocks<1>(rows);
}

}  // namespace dstrain::ops
