#include "runtime/tensor/bfloat16.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

namespace dstrain {
namespace {

/// The two bf16 values around `value`, and the nearer one; on a tie the one with an even mantissa.
float nearest(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const float below = std::bit_cast<float>(bits & 0xffff0000U);
  const float above = std::bit_cast<float>((bits & 0xffff0000U) + 0x10000U);
  const double to_below = std::abs(static_cast<double>(value) - below);
  const double to_above = std::abs(static_cast<double>(above) - value);
  if (to_below != to_above) return to_below < to_above ? below : above;
  return (bits & 0x10000U) == 0 ? below : above;
}

}  // namespace

TEST_CASE("BFloat16: rounds to nearest and ties to even", "[tensor][bfloat16]") {
  const auto high = GENERATE(range(0x0080U, 0x7f7fU, 0x0101U));
  const std::uint32_t low = GENERATE(0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU);
  const float value = std::bit_cast<float>((high << 16) | low);
  CAPTURE(high, low);
  CHECK(to_float(to_bfloat16(value)) == nearest(value));
  CHECK(to_float(to_bfloat16(-value)) == -nearest(value));
}

TEST_CASE("BFloat16: infinities stay and a NaN stays a NaN", "[tensor][bfloat16]") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(to_float(to_bfloat16(infinity)) == infinity);
  CHECK(to_float(to_bfloat16(std::numeric_limits<float>::max())) == infinity);
  CHECK(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001U)))));
}

TEST_CASE("BFloat16: every value survives the way through float", "[tensor][bfloat16]") {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const BFloat16 value{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(value);
    if (!std::isnan(wide)) REQUIRE(to_bfloat16(wide) == value);
  }
}

}  // namespace dstrain
