#include "runtime/ops/round_stochastic.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/device/cpu_stream.h"
#include "runtime/numeric/philox.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

struct Draw {
  std::int64_t key = 42;
  std::uint32_t stream = 0;
  std::int64_t first = 0;
};

std::vector<float> rounded(std::vector<float> values, DType dtype, Draw draw = {}) {
  const Shape shape{std::ssize(values)};
  test::TypedValues target(std::vector<float>(values.size()), dtype);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::round_stochastic({.source = HostView(values, shape),
                         .target = target.view(shape),
                         .key = HostView(&draw.key, DType::i64, {1}),
                         .stream = draw.stream,
                         .first = draw.first},
                        stream);
  return target.read();
}

/// Of all sizes that the dtype has, subnormal ones and zero included.
std::vector<float> values_of_all_sizes(std::int64_t count, DType dtype) {
  std::vector<float> values = test::random_values(count, 5);
  const int least = dtype == DType::f16 ? -26 : -140;
  const int most = dtype == DType::f16 ? 14 : 120;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(values[i], least + static_cast<int>(i) % (most - least));
  }
  values[0] = 0;
  return values;
}

/// The next value of the dtype in that direction, or the value itself if it is one.
double neighbour(float value, DType dtype, double towards) {
  const bool half = dtype == DType::f16;
  const int least = half ? -24 : -133;
  const int digits = half ? 11 : 8;
  if (value == 0) return 0;
  const int exponent = std::max(std::ilogb(value) - digits + 1, least);
  const double steps = std::ldexp(static_cast<double>(value), -exponent);
  return std::ldexp(towards < 0 ? std::floor(steps) : std::ceil(steps), exponent);
}

TEST_CASE("Round stochastic: goes to a neighbour and keeps what needs no rounding",
          "[ops][round_stochastic]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const auto numel = GENERATE(1, 127, 128, 129, 16'385, 70'000);
  const std::vector<float> values = values_of_all_sizes(numel, dtype);
  const std::vector<float> once = rounded(values, dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto got = static_cast<double>(once[i]);
    const bool right =
        got == neighbour(values[i], dtype, -1) || got == neighbour(values[i], dtype, 1);
    if (!right) FAIL(values[i] << " became " << once[i]);
  }
  CHECK((rounded(once, dtype, {.key = 43}) == once));
}

TEST_CASE("Round stochastic: what is not finite stays so", "[ops][round_stochastic]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special{infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
  for (std::int64_t key = 0; key < 100; ++key) {
    const std::vector<float> got = rounded(special, dtype, {.key = key});
    CHECK((got[0] == infinity && got[1] == -infinity && std::isnan(got[2])));
  }
  CHECK(std::isinf(rounded({70'000}, DType::f16)[0]));
}

TEST_CASE("Round stochastic: is right on average", "[ops][round_stochastic]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  // In the dtype's normal range, and below that of f16: 0.3 of a step.
  const float value = GENERATE(1.0F + 0x1p-11F, -3.3e-5F, 0x1p-24F * 5.3F, 1000.7F);
  constexpr std::int64_t count = 1'000'000;
  const std::vector<float> got =
      rounded(std::vector<float>(static_cast<std::size_t>(count), value), dtype);
  const double mean = std::accumulate(got.begin(), got.end(), 0.0) / count;
  const double below = neighbour(value, dtype, -1);
  const double step = neighbour(value, dtype, 1) - below;
  const double part = (static_cast<double>(value) - below) / step;
  const double deviation = step * std::sqrt(part * (1 - part) / count);
  CHECK(std::abs(mean - static_cast<double>(value)) < 5 * deviation + step * 0x1p-13);
}

TEST_CASE("Round stochastic: element e takes the bits that it is promised",
          "[ops][round_stochastic]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const std::int64_t first = GENERATE(0, 64, 1000, std::int64_t{1} << 34);
  constexpr std::int64_t key = 0x1234'5678'9abc'def0;
  const std::vector<float> values = test::random_values(300, 2);
  const std::vector<float> got = rounded(values, dtype, {.key = key, .stream = 7, .first = first});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t e = static_cast<std::uint64_t>(first) + i;
    const auto words = philox(
        {static_cast<std::uint64_t>(key), RandomPurpose::rounding, 7, 16 * (e / 128) + e % 16});
    const std::uint32_t word = words[e % 128 / 32];
    const auto draw = static_cast<std::uint16_t>(e % 32 < 16 ? word : word >> 16U);
    const float expected = dtype == DType::f16 ? to_float(stochastic_float16(values[i], draw))
                                               : to_float(stochastic_bfloat16(values[i], draw));
    CHECK(got[i] == expected);
  }
}

TEST_CASE("Round stochastic: a cut changes no bit and steps and tensors draw apart",
          "[ops][round_stochastic]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const std::vector<float> values = test::random_values(50'000, 9);
  const std::vector<float> whole = rounded(values, dtype);
  const auto cut = GENERATE(std::ptrdiff_t{64}, std::ptrdiff_t{100}, std::ptrdiff_t{16'384});
  std::vector<float> parts = rounded({values.begin(), values.begin() + cut}, dtype);
  const std::vector<float> rest =
      rounded({values.begin() + cut, values.end()}, dtype, {.first = cut});
  parts.insert(parts.end(), rest.begin(), rest.end());
  CHECK((parts == whole));
  CHECK((rounded(values, dtype, {.key = 43}) != whole));
  CHECK((rounded(values, dtype, {.stream = 1}) != whole));
}

}  // namespace
}  // namespace dstrain
