#pragma once
#include <bit>
#include <cstdint>

#include "runtime/tensor/dtype.h"

namespace dstrain {

/// The upper half of a float: 8 exponent bits, 7 mantissa bits. For storage; arithmetic is f32.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(BFloat16, BFloat16) = default;
};

template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;

constexpr float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Rounds to nearest, ties to even. A NaN stays a NaN, with its quiet bit set.
constexpr BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<std::uint16_t>((nan ? bits | 0x400000U : rounded) >> 16)};
}

/// Rounds stochastically to one of the two neighbours: away from zero if `draw`, uniform over 16
/// bits, is below the fraction of the way there that the value has. BFloat16 values are unchanged.
constexpr BFloat16 stochastic_bfloat16(float value, std::uint16_t draw) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<std::uint16_t>((nan ? bits | 0x400000U : bits + draw) >> 16)};
}

}  // namespace dstrain
