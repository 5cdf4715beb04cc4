#include "runtime/ops/gelu.h"

#include <limits>

#include <catch2/catch.hpp>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/fast_exp.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

std::vector<float> points() {
  std::vector<float> values = test::random_values(40001, 1, 3);
  for (const float special : {0.0F, -0.0F, 20.0F, -20.0F, 1e4F, -1e4F}) values.push_back(special);
  return values;
}

TEST_CASE("GELU: forward agrees with double", "[ops][gelu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  test::TypedValues input(points(), dtype);
  const auto numel = static_cast<std::int64_t>(input.size());
  std::vector<double> expected;
  for (const double x : input.read_double()) expected.push_back(reference::gelu(x));
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::gelu_forward(input.view({numel}), input.view({numel}), stream);
  const auto tolerance = test::tolerance::stored(dtype, test::tolerance::elementwise);
  CHECK(test::difference(input.read(), expected, tolerance) == "");
}

TEST_CASE("GELU: backward agrees with central differences and repeats forward", "[ops][gelu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  test::TypedValues input(test::random_values(3001, 2, 2), dtype);
  test::TypedValues gradient(test::random_values(3001, 3), dtype);
  std::vector<double> inputs = input.read_double();
  std::vector<double> expected = gradient.read_double();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    double& x = inputs[i];
    expected[i] *= test::central_difference(x, [&x] { return reference::gelu(x); });
  }
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  test::TypedValues output(test::random_values(3001, 4), dtype);
  ops::gelu_backward(input.view({3001}), gradient.view({3001}), output.view({3001}), stream);
  const auto tolerance = test::tolerance::stored(dtype, test::tolerance::elementwise);
  CHECK(test::difference(gradient.read(), expected, tolerance) == "");
  ops::gelu_forward(input.view({3001}), input.view({3001}), stream);
  CHECK(output.read() == input.read());
}

TEST_CASE("Fast exp2: one unit in the last place over its range", "[ops][fast_exp]") {
  double worst = 0;
  for (float x = -126.0F; x < 127.0F; x += 0.00123F) {
    const double exact = std::exp2(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(ops::fast_exp2(x)) / exact - 1));
  }
  CHECK(worst < 1.2e-7);
  CHECK(ops::fast_exp2(0.0F) == 1.0F);
  CHECK(ops::fast_exp2(-126.5F) == 0.0F);
  CHECK(ops::fast_exp2(std::numeric_limits<float>::lowest()) == 0.0F);
  CHECK(std::isnan(ops::fast_exp2(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace dstrain
