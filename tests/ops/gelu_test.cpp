#include "runtime/ops/gelu.h"

#include <limits>

#include <catch2/catch.hpp>

#include "runtime/ops/fast_exp.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

std::vector<float> points() {
  std::vector<float> values = test::random_values(40001, 1, 3);
  for (const float special : {0.0F, -0.0F, 20.0F, -20.0F, 1e4F, -1e4F}) values.push_back(special);
  return values;
}

TEST_CASE("GELU: forward agrees with double", "[ops][gelu]") {
  std::vector<float> input = points();
  const auto numel = static_cast<std::int64_t>(input.size());
  std::vector<double> expected;
  for (const float x : input) expected.push_back(reference::gelu(static_cast<double>(x)));
  Stream stream(Stream::Mode::inline_on_caller);
  ops::gelu_forward({input, {numel}}, {input, {numel}}, stream);
  CHECK(test::difference(input, expected, test::tolerance::elementwise) == "");
}

TEST_CASE("GELU: backward agrees with central differences", "[ops][gelu]") {
  std::vector<float> input = test::random_values(3001, 2, 2);
  std::vector<float> gradient = test::random_values(3001, 3);
  std::vector<double> expected;
  for (std::size_t i = 0; i < input.size(); ++i) {
    auto x = static_cast<double>(input[i]);
    expected.push_back(static_cast<double>(gradient[i]) *
                       test::central_difference(x, [&x] { return reference::gelu(x); }));
  }
  Stream stream(Stream::Mode::inline_on_caller);
  ops::gelu_backward({input, {3001}}, {gradient, {3001}}, stream);
  CHECK(test::difference(gradient, expected, test::tolerance::elementwise) == "");
}

TEST_CASE("Fast exp: two units in the last place over its range", "[ops][fast_exp]") {
  double worst = 0;
  for (float x = -87.0F; x < 88.0F; x += 0.00123F) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(ops::fast_exp(x)) / exact - 1));
  }
  CHECK(worst < 2.4e-7);
  CHECK(ops::fast_exp(0.0F) == 1.0F);
  CHECK(ops::fast_exp(-1e30F) < 2e-38F);
  CHECK(std::isfinite(ops::fast_exp(1e30F)));
  CHECK(std::isnan(ops::fast_exp(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace dstrain
