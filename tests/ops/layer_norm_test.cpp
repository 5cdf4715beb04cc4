#include "runtime/ops/layer_norm.h"

#include <catch2/catch.hpp>

#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

constexpr float eps = 1e-5F;

struct Case {
  std::int64_t rows, columns;
};

/// Tensors of one case.
struct Norm {
  explicit Norm(Case sizes)
      : rows(sizes.rows),
        columns(sizes.columns),
        input(test::random_values(rows * columns, 1)),
        weight(test::random_values(columns, 2)),
        bias(test::random_values(columns, 3)),
        mean(static_cast<std::size_t>(rows)),
        rstd(static_cast<std::size_t>(rows)),
        output(input.size()),
        gradient(test::random_values(rows * columns, 4)) {}

  ops::LayerNormArgs args() {
    return {.input = {input, {rows, columns}},
            .weight = {weight, {columns}},
            .bias = {bias, {columns}},
            .mean = {mean, {rows}},
            .rstd = {rstd, {rows}},
            .output = {output, {rows, columns}},
            .eps = eps};
  }
  ops::LayerNormBackwardArgs backward_args() {
    return {.input = {input, {rows, columns}},
            .weight = {weight, {columns}},
            .mean = {mean, {rows}},
            .rstd = {rstd, {rows}},
            .output_gradient = {gradient, {rows, columns}},
            .residual = {},
            .input_gradient = {input_gradient, {rows, columns}},
            .weight_gradient = {weight_gradient, {columns}},
            .bias_gradient = {bias_gradient, {columns}}};
  }

  std::int64_t rows, columns;
  std::vector<float> input, weight, bias, mean, rstd, output, gradient;
  std::vector<float> input_gradient = test::random_values(rows * columns, 5);
  std::vector<float> weight_gradient = test::random_values(columns, 6);
  std::vector<float> bias_gradient = test::random_values(columns, 7);
};

Case cases() {
  return GENERATE(Case{1, 1}, Case{3, 5}, Case{17, 32}, Case{2, 100}, Case{130, 67});
}

TEST_CASE("Layer norm: forward agrees with double and recompute with forward",
          "[ops][layer_norm]") {
  Norm norm(cases());
  Stream stream(Stream::Mode::inline_on_caller);
  ops::layer_norm_forward(norm.args(), stream);
  const auto expected =
      reference::layer_norm(test::to_double(norm.input), test::to_double(norm.weight),
                            test::to_double(norm.bias), static_cast<double>(eps));
  CHECK(test::difference(norm.output, expected, test::tolerance::reduction) == "");
  const std::vector<float> first = norm.output;
  norm.output.assign(first.size(), 0.0F);
  ops::layer_norm_recompute(norm.args(), stream);
  CHECK(norm.output == first);
}

TEST_CASE("Layer norm: backward agrees with central differences", "[ops][layer_norm]") {
  const Case sizes = GENERATE(Case{3, 5}, Case{5, 32}, Case{70, 19});
  const bool accumulate = GENERATE(false, true);
  Norm norm(sizes);
  Stream stream(Stream::Mode::inline_on_caller);
  ops::layer_norm_forward(norm.args(), stream);
  auto x = test::to_double(norm.input);
  auto weight = test::to_double(norm.weight);
  auto bias = test::to_double(norm.bias);
  const auto loss = [&] {
    return test::weighted_sum(reference::layer_norm(x, weight, bias, static_cast<double>(eps)),
                              norm.gradient);
  };
  std::vector<double> dx = test::central_differences(x, loss);
  std::vector<double> dw = test::central_differences(weight, loss);
  std::vector<double> db = test::central_differences(bias, loss);
  const auto add = [accumulate](std::vector<double>& sum, const std::vector<float>& before) {
    for (std::size_t i = 0; accumulate && i < sum.size(); ++i) {
      sum[i] += static_cast<double>(before[i]);
    }
  };
  add(dx, norm.input_gradient);
  add(dw, norm.weight_gradient);
  add(db, norm.bias_gradient);
  auto args = norm.backward_args();
  args.accumulate_input = args.accumulate_weight = args.accumulate_bias = accumulate;
  ops::layer_norm_backward(args, stream);
  CHECK(test::difference(norm.input_gradient, dx, test::tolerance::reduction) == "");
  CHECK(test::difference(norm.weight_gradient, dw, test::tolerance::reduction) == "");
  CHECK(test::difference(norm.bias_gradient, db, test::tolerance::reduction) == "");
}

TEST_CASE("Layer norm: a residual gradient is added also in place", "[ops][layer_norm]") {
  Norm norm({20, 24});
  std::vector<float> residual = test::random_values(20 * 24, 8);
  Stream stream(Stream::Mode::inline_on_caller);
  ops::layer_norm_forward(norm.args(), stream);
  auto args = norm.backward_args();
  ops::layer_norm_backward(args, stream);
  std::vector<float> expected = norm.input_gradient;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += residual[i];
  args.residual = {residual, {20, 24}};
  ops::layer_norm_backward(args, stream);
  CHECK(norm.input_gradient == expected);
  args.input_gradient = args.residual;
  ops::layer_norm_backward(args, stream);
  CHECK(residual == expected);
}

}  // namespace
}  // namespace dstrain
