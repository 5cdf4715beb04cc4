#include "runtime/tensor/float16.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

namespace dstrain::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float from_f16(std::uint16_t bits) {
  return to_float(Float16{bits});
}

std::uint16_t to_f16(float value) {
  return to_float16(value).bits;
}

}  // namespace

TEST_CASE("Float16: every half is converted exactly", "[tensor][float16]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_f16(static_cast<std::uint16_t>(bits));
    const int exponent = static_cast<int>((bits >> 10) & 31U);
    const double fraction = bits & 1023U;
    if (exponent == 31) {
      if (std::isinf(value) != (fraction == 0)) FAIL("bits " << bits);
      continue;
    }
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const bool negative = bits >= 0x8000;
    if (value != (negative ? -magnitude : magnitude) || std::signbit(value) != negative) {
      FAIL("bits " << bits);
    }
  }
}

TEST_CASE("Float16: every half survives the way to a float and back", "[tensor][float16]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool nan = (bits & 0x7FFFU) > 0x7C00U;
    if (to_f16(from_f16(half)) != (nan ? half | 0x200U : half)) FAIL("bits " << bits);
  }
}

TEST_CASE("Float16: between two halves the nearer one is taken", "[tensor][float16]") {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    const float above = high == 0x7C00 ? 65536.0F : from_f16(high);
    const float middle = from_f16(low) + (above - from_f16(low)) / 2;
    const auto even = static_cast<std::uint16_t>(bits + (bits & 1U));
    for (const std::uint16_t sign : {std::uint16_t{0}, std::uint16_t{0x8000}}) {
      const auto rounded = [sign](float value) {
        return to_f16(std::copysign(value, sign == 0 ? 1.0F : -1.0F));
      };
      if (rounded(middle) != (even | sign) || rounded(std::nextafterf(middle, 0)) != (low | sign) ||
          rounded(std::nextafterf(middle, infinity)) != (high | sign)) {
        FAIL("bits " << bits);
      }
    }
  }
}

TEST_CASE("Float16: halves end at 65504", "[tensor][float16]") {
  CHECK(to_f16(65504) == 0x7BFF);
  CHECK(to_f16(std::nextafterf(65520, 0)) == 0x7BFF);
  CHECK(to_f16(65520) == 0x7C00);
  CHECK(to_f16(-std::numeric_limits<float>::max()) == 0xFC00);
  CHECK(to_f16(infinity) == 0x7C00);
  CHECK(to_f16(0x1p-25F) == 0);
  CHECK(to_f16(std::nextafterf(0x1p-25F, 1)) == 1);
  CHECK(to_f16(-std::numeric_limits<float>::denorm_min()) == 0x8000);
  CHECK(to_f16(std::numeric_limits<float>::quiet_NaN()) == 0x7E00);
}

}  // namespace dstrain::test
