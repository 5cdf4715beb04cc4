#include "runtime/ops/add.h"

#include <catch2/catch.hpp>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "tests/support/random_values.h"

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

TEST_CASE("Add: ranges of unequal length are refused", "[ops][add]") {
  std::vector<float> values(4);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  CHECK_THROWS_AS(ops::add(HostView(values, {3}), HostView(values, {4}), stream), Error);
}

}  // namespace
}  // namespace dstrain
