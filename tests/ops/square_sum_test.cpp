#include "runtime/ops/square_sum.h"

#include <cmath>

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

void add_squares(std::span<float> values, ExactSum& sum) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::add_squares({{HostView(values, {std::ssize(values)})}, ops::view_of(sum)}, stream);
}

double sum_of(std::span<float> values) {
  ExactSum sum;
  add_squares(values, sum);
  return sum.value();
}

/// Of very different sizes.
std::vector<float> values_of(std::int64_t count) {
  std::vector<float> values = test::random_values(count, 7);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= std::exp2f(float(i % 40) - 20);
  return values;
}

TEST_CASE("Square sum: of any number of values", "[ops][square_sum]") {
  std::vector<float> values = values_of(GENERATE(0, 1, 63, 64, 65, 1000, 65536, 65537, 200'003));
  long double reference = 0;
  for (const float value : values) reference += static_cast<long double>(value) * value;
  CHECK(sum_of(values) == Catch::Approx(static_cast<double>(reference)).epsilon(1e-14));
}

TEST_CASE("Square sum: 16-bit values give the sum of their f32 values", "[ops][square_sum]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const auto numel = GENERATE(63, 64, 65, 65'537);
  test::TypedValues halves(test::random_values(numel, 7), dtype);
  std::vector<float> values = halves.read();
  ExactSum sum;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::add_squares({{halves.view({numel})}, ops::view_of(sum)}, stream);
  CHECK(sum.value() == sum_of(values));
}

TEST_CASE("Square sum: cuts on block boundaries leave the bits alone", "[ops][square_sum]") {
  std::vector<float> values = values_of(200'003);
  const auto cut = GENERATE(0U, 64U, 6400U, 65536U, 199'936U);
  const std::span<float> all(values);
  ExactSum parts;
  add_squares(all.subspan(cut), parts);
  add_squares(all.first(cut), parts);
  CHECK(parts.value() == sum_of(values));
  ExactSum together;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const auto first = static_cast<std::int64_t>(cut);
  const std::int64_t second = std::ssize(values) - first;
  ops::add_squares({{HostView(values.data() + cut, DType::f32, {second}),
                     HostView(values.data(), DType::f32, {first})},
                    ops::view_of(together)},
                   stream);
  CHECK(together.value() == sum_of(values));
}

TEST_CASE("Square sum: lanes and tree are as promised", "[ops][square_sum]") {
  std::vector<float> values = test::random_values(64, 3, 1e10F);
  double lane[8] = {};
  for (std::size_t i = 0; i < 64; ++i) {
    lane[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  const double expected =
      ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  CHECK(sum_of(values) == expected);
}

}  // namespace
}  // namespace dstrain
