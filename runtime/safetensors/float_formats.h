#pragma once
#include <bit>
#include <cstdint>

namespace dstrain::safetensors {

/// The value of an IEEE binary16, exact: subnormals, infinities and NaNs included.
constexpr float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1F) {
    return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
  }
  if (exponent == 0) {  // a subnormal half is a normal float
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

/// The nearest IEEE binary16, ties to even; infinity from 65520 on. A NaN stays one, with its quiet
/// bit set.
constexpr std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= 0x47800000U) {  // 2^16 and beyond
    half = 0x7C00U;
  } else if (magnitude >= 0x38800000U) {  // a normal half; a carry goes into the exponent
    half = (magnitude + 0xFFFU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
  } else {  // the sum's last place is a subnormal half's: the addition rounds
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5F);
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace dstrain::safetensors
