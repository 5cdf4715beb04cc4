#include "runtime/ops/add.h"

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

TEST_CASE("Add: each element is rounded once", "[ops][add]") {
  const std::int64_t numel = GENERATE(0, 1, 17, 16385, 70'000);
  std::vector<float> values = test::random_values(numel, 1);
  std::vector<float> sum = test::random_values(numel, 2);
  std::vector<float> expected(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) expected[i] = sum[i] + values[i];
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::add(HostView(values, {numel}), HostView(sum, {numel}), stream);
  CHECK((sum == expected));
}

TEST_CASE("Add: 16-bit sums are computed in f32 and rounded once", "[ops][add]") {
  const DType from = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType to = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t numel = 16'385;
  test::TypedValues values(test::random_values(numel, 1), from);
  test::TypedValues sum(test::random_values(numel, 2), to);
  const std::vector<float> terms = values.read();
  std::vector<float> expected = sum.read();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = test::rounded(expected[i] + terms[i], to);
  }
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::add(values.view({numel}), sum.view({numel}), stream);
  CHECK((sum.read() == expected));
}

TEST_CASE("Add: ranges of unequal length are refused", "[ops][add]") {
  std::vector<float> values(4);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  CHECK_THROWS_AS(ops::add(HostView(values, {3}), HostView(values, {4}), stream), Error);
}

}  // namespace
}  // namespace dstrain
