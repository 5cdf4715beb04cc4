#include "runtime/ops/bias_gradient.h"

#include <catch2/catch.hpp>

#include "runtime/device/cpu_stream.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

TEST_CASE("Bias gradient: the sum of the rows", "[ops][bias_gradient]") {
  const std::int64_t rows = GENERATE(1, 63, 64, 200);
  const std::int64_t columns = GENERATE(1, 64, 131);
  const bool accumulate = GENERATE(false, true);
  test::TypedValues values(test::random_values(rows * columns, 1),
                           GENERATE(DType::f32, DType::bf16));
  const std::vector<double> terms = values.read_double();
  std::vector<float> gradient = test::random_values(columns, 2);
  std::vector<double> expected(gradient.size());
  for (std::size_t j = 0; j < expected.size(); ++j) {
    expected[j] = accumulate ? static_cast<double>(gradient[j]) : 0.0;
    for (std::size_t i = j; i < terms.size(); i += expected.size()) {
      expected[j] += terms[i];
    }
  }
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::bias_gradient({.output_gradient = values.view({rows, columns}),
                      .gradient = HostView(gradient, {columns}),
                      .accumulate = accumulate},
                     stream);
  CHECK(test::difference(gradient, expected, test::tolerance::reduction) == "");
}

}  // namespace
}  // namespace dstrain
