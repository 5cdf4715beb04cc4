#pragma once
#include <bit>
#include <cstdint>

#include "runtime/tensor/dtype.h"

namespace dstrain {

/// IEEE 754's binary16: 5 exponent bits, 10 mantissa bits. For storage; arithmetic is f32.
struct Float16 {
  std::uint16_t bits = 0;
  friend bool operator==(Float16, Float16) = default;
};

template <>
inline constexpr DType dtype_of<Float16> = DType::f16;

// Without branches, so that loops over them are vectorized on any machine.

constexpr float to_float(Float16 value) {
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  constexpr std::uint32_t least_normal = 1U << 10;
  constexpr std::uint32_t infinity = 31U << 10;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13) + rebias;
  const auto tiny = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
  const std::uint32_t finite = magnitude < least_normal ? tiny : normal;
  const std::uint32_t bits = magnitude >= infinity ? normal + rebias : finite;
  return std::bit_cast<float>(bits | (static_cast<std::uint32_t>(value.bits & 0x8000U) << 16));
}

/// Returns the bits for a magnitude: `finite` if it is between two Float16; infinity from 65536 on;
/// a NaN stays a NaN, with its quiet bit set.
constexpr std::uint32_t float16_magnitude(std::uint32_t magnitude, std::uint32_t finite) {
  constexpr std::uint32_t overflow = (127 + 16) << 23;
  constexpr std::uint32_t infinity = 255U << 23;
  const std::uint32_t nan = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  const std::uint32_t special = magnitude > infinity ? nan : 0x7c00U;
  return magnitude >= overflow ? special : finite;
}

/// Rounds to nearest, ties to even; to infinity from 65520 on. A NaN stays a NaN, with its quiet
/// bit set.
constexpr Float16 to_float16(float value) {
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  constexpr std::uint32_t least_normal = (127 - 14) << 23;
  constexpr float to_mantissa = 0.5F;  // a value added to it is rounded to multiples of 2^-24
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = all & 0x7fffffffU;
  const std::uint32_t normal = (magnitude - rebias + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t tiny =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + to_mantissa) -
      std::bit_cast<std::uint32_t>(to_mantissa);
  const std::uint32_t finite = magnitude < least_normal ? tiny : normal;
  const std::uint32_t bits = float16_magnitude(magnitude, finite);
  return {static_cast<std::uint16_t>(bits | ((all >> 16) & 0x8000U))};
}

/// Rounds stochastically to one of the two neighbours: away from zero if `draw`, uniform over 16
/// bits, is below the fraction of the way there that the value has. Float16 values are unchanged.
constexpr Float16 stochastic_float16(float value, std::uint16_t draw) {
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  constexpr std::uint32_t least_normal = (127 - 14) << 23;
  constexpr float to_draw = 0x1p40F;  // a step of the smallest values, 2^-24, becomes 2^16
  const auto all = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = all & 0x7fffffffU;
  const bool small = magnitude < least_normal;
  const std::uint32_t normal = (magnitude - rebias + (std::uint32_t{draw} >> 3)) >> 13;
  const float scaled = small ? std::bit_cast<float>(magnitude) * to_draw : 0.0F;
  const std::uint32_t tiny =
      (static_cast<std::uint32_t>(static_cast<std::int32_t>(scaled)) + draw) >> 16;
  const std::uint32_t bits = float16_magnitude(magnitude, small ? tiny : normal);
  return {static_cast<std::uint16_t>(bits | ((all >> 16) & 0x8000U))};
}

}  // namespace dstrain
