#include "runtime/ops/layer_norm.h"

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

constexpr float eps = 1e-5F;

struct LayerNormCase {
  std::int64_t rows, columns;
};

/// Tensors of one case.
struct Norm {
  Norm(LayerNormCase sizes, DType dtype)
      : rows(sizes.rows),
        columns(sizes.columns),
        input(test::random_values(rows * columns, 1), dtype),
        weight(test::random_values(columns, 2), dtype),
        bias(test::random_values(columns, 3), dtype),
        mean(static_cast<std::size_t>(rows)),
        rstd(static_cast<std::size_t>(rows)),
        output(test::random_values(rows * columns, 9), dtype),
        gradient(test::random_values(rows * columns, 4), dtype),
        input_gradient(test::random_values(rows * columns, 5), dtype) {}

  ops::LayerNormArgs args() {
    return {.input = input.view({rows, columns}),
            .weight = weight.view({columns}),
            .bias = bias.view({columns}),
            .mean = HostView(mean, {rows}),
            .rstd = HostView(rstd, {rows}),
            .output = output.view({rows, columns}),
            .eps = eps};
  }
  ops::LayerNormBackwardArgs backward_args() {
    return {.input = input.view({rows, columns}),
            .weight = weight.view({columns}),
            .mean = HostView(mean, {rows}),
            .rstd = HostView(rstd, {rows}),
            .output_gradient = gradient.view({rows, columns}),
            .residual = {},
            .input_gradient = input_gradient.view({rows, columns}),
            .weight_gradient = HostView(weight_gradient, {columns}),
            .bias_gradient = HostView(bias_gradient, {columns})};
  }

  std::int64_t rows, columns;
  test::TypedValues input, weight, bias;
  std::vector<float> mean, rstd;
  test::TypedValues output, gradient, input_gradient;
  std::vector<float> weight_gradient = test::random_values(columns, 6);
  std::vector<float> bias_gradient = test::random_values(columns, 7);
};

LayerNormCase cases() {
  return GENERATE(LayerNormCase{1, 1}, LayerNormCase{3, 5}, LayerNormCase{17, 32},
                  LayerNormCase{2, 100}, LayerNormCase{130, 67});
}

TEST_CASE("Layer norm: forward agrees with double and recompute with forward",
          "[ops][layer_norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Norm norm(cases(), dtype);
  const auto tolerance = test::tolerance::stored(dtype, test::tolerance::reduction);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::layer_norm_forward(norm.args(), stream);
  const auto expected = reference::layer_norm(norm.input.read_double(), norm.weight.read_double(),
                                              norm.bias.read_double(), static_cast<double>(eps));
  CHECK(test::difference(norm.output.read(), expected, tolerance) == "");
  const std::vector<float> first = norm.output.read();
  norm.output.assign(std::vector<float>(first.size()));
  ops::layer_norm_recompute(norm.args(), stream);
  CHECK(norm.output.read() == first);
}

TEST_CASE("Layer norm: backward agrees with central differences", "[ops][layer_norm]") {
  const LayerNormCase sizes =
      GENERATE(LayerNormCase{3, 5}, LayerNormCase{5, 32}, LayerNormCase{70, 19});
  const bool accumulate = GENERATE(false, true);
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Norm norm(sizes, dtype);
  const auto tolerance = test::tolerance::stored(dtype, test::tolerance::reduction);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::layer_norm_forward(norm.args(), stream);
  auto x = norm.input.read_double();
  auto weight = norm.weight.read_double();
  auto bias = norm.bias.read_double();
  const auto loss = [&] {
    return test::weighted_sum(reference::layer_norm(x, weight, bias, static_cast<double>(eps)),
                              norm.gradient.read());
  };
  std::vector<double> dx = test::central_differences(x, loss);
  std::vector<double> dw = test::central_differences(weight, loss);
  std::vector<double> db = test::central_differences(bias, loss);
  const auto add = [accumulate](std::vector<double>& sum, const std::vector<float>& before) {
    for (std::size_t i = 0; accumulate && i < sum.size(); ++i) {
      sum[i] += static_cast<double>(before[i]);
    }
  };
  add(dx, norm.input_gradient.read());
  add(dw, norm.weight_gradient);
  add(db, norm.bias_gradient);
  auto args = norm.backward_args();
  args.accumulate_input = args.accumulate_weight = args.accumulate_bias = accumulate;
  ops::layer_norm_backward(args, stream);
  CHECK(test::difference(norm.input_gradient.read(), dx, tolerance) == "");
  CHECK(test::difference(norm.weight_gradient, dw, test::tolerance::reduction) == "");
  CHECK(test::difference(norm.bias_gradient, db, test::tolerance::reduction) == "");
}

TEST_CASE("RMS norm: agrees with double and with central differences", "[ops][layer_norm]") {
  const LayerNormCase sizes =
      GENERATE(LayerNormCase{1, 1}, LayerNormCase{5, 32}, LayerNormCase{70, 19});
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Norm norm(sizes, dtype);
  ops::LayerNormArgs args = norm.args();
  args.bias = args.mean = {};
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::layer_norm_forward(args, stream);
  auto x = norm.input.read_double();
  auto weight = norm.weight.read_double();
  const auto output = [&] {
    return reference::rms_norm(x, weight, static_cast<double>(eps));
  };
  const auto tolerance = test::tolerance::stored(dtype, test::tolerance::reduction);
  const std::vector<float> first = norm.output.read();
  CHECK(test::difference(first, output(), tolerance) == "");
  norm.output.assign(std::vector<float>(first.size()));
  ops::layer_norm_recompute(args, stream);
  CHECK(norm.output.read() == first);
  const auto loss = [&] {
    return test::weighted_sum(output(), norm.gradient.read());
  };
  const std::vector<double> dx = test::central_differences(x, loss);
  const std::vector<double> dw = test::central_differences(weight, loss);
  ops::LayerNormBackwardArgs backward = norm.backward_args();
  backward.mean = backward.bias_gradient = {};
  ops::layer_norm_backward(backward, stream);
  CHECK(test::difference(norm.input_gradient.read(), dx, tolerance) == "");
  CHECK(test::difference(norm.weight_gradient, dw, test::tolerance::reduction) == "");
}

TEST_CASE("Layer norm: a residual gradient is added also in place", "[ops][layer_norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Norm norm({20, 24}, dtype);
  test::TypedValues residual(test::random_values(20 * 24, 8), dtype);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::layer_norm_forward(norm.args(), stream);
  auto args = norm.backward_args();
  ops::layer_norm_backward(args, stream);
  std::vector<double> expected = norm.input_gradient.read_double();
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += residual.read_double()[i];
  args.residual = residual.view({20, 24});
  ops::layer_norm_backward(args, stream);
  const std::vector<float> sum = norm.input_gradient.read();
  const double ulp = dtype == DType::bf16  ? 0x1p-7
                     : dtype == DType::f16 ? 0x1p-10
                                           : 0x1p-22;  // the first sum was rounded as well
  CHECK(test::difference(sum, expected, {ulp, ulp}) == "");
  args.input_gradient = args.residual;
  ops::layer_norm_backward(args, stream);
  CHECK(residual.read() == sum);
}

}  // namespace
}  // namespace dstrain
