#include "runtime/ops/scale.h"

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

TEST_CASE("Scale: each element is rounded once", "[ops][scale]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t numel = GENERATE(0, 1, 17, 16385, 70'000);
  test::TypedValues input(test::random_values(numel, 1), dtype);
  test::TypedValues output(test::random_values(numel, 2), dtype);
  std::vector<float> expected = input.read();
  for (float& value : expected) value = test::rounded(0.3F * value, dtype);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::scale(input.view({numel}), 0.3F, output.view({numel}), stream);
  CHECK((output.read() == expected));
  ops::scale(input.view({numel}), 0.3F, input.view({numel}), stream);  // in place
  CHECK((input.read() == expected));
}

TEST_CASE("Scale: an output of another type is refused", "[ops][scale]") {
  test::TypedValues input(test::random_values(4, 1), DType::f32);
  test::TypedValues output(test::random_values(4, 1), DType::bf16);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  CHECK_THROWS_AS(ops::scale(input.view({4}), 2, output.view({4}), stream), Error);
}

}  // namespace
}  // namespace dstrain
