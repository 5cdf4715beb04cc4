#include "runtime/ops/copy_finite.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

/// Copies, checks the copy, and returns what is said of the values.
std::int32_t copy(const std::vector<float>& values, DType dtype) {
  const Shape shape{std::ssize(values)};
  test::TypedValues from(values, dtype);
  test::TypedValues to(std::vector<float>(values.size()), dtype);
  std::int32_t not_finite = 0;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::copy_finite({.source = from.view(shape),
                    .target = to.view(shape),
                    .not_finite = HostView(&not_finite, DType::i32, {1})},
                   stream);
  const auto bytes = static_cast<std::size_t>(from.view(shape).bytes());
  CHECK((bytes == 0 || std::memcmp(from.view(shape).data(), to.view(shape).data(), bytes) == 0));
  return not_finite;
}

TEST_CASE("CopyFinite: a NaN or infinity is found at any position", "[ops][copy_finite]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::size_t numel = GENERATE(0U, 1U, 100U, 50'000U);
  const float large = dtype == DType::f16 ? 65504 : std::numeric_limits<float>::max() / 2;
  std::vector<float> values(numel, -large);
  CHECK(copy(values, dtype) == 0);
  if (numel > 0) {
    const float odd =
        GENERATE(std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity());
    values[GENERATE(0U, 49'999U) % numel] = odd;
    CHECK(copy(values, dtype) == 1);
  }
}

}  // namespace
}  // namespace dstrain
