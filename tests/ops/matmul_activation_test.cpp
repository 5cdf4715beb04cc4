#include "runtime/ops/matmul_activation.h"

#include "runtime/device/cpu_stream.h"
#include "tests/ops/product_space.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

test::LayerSizes layer_sizes() {
  return GENERATE(test::LayerSizes{1, 1, 1}, test::LayerSizes{5, 3, 7},
                  test::LayerSizes{33, 17, 20});
}

/// Two linear layers with a GELU between: (rows, inputs) to `outputs` columns and back.
struct Layers {
  Layers(test::LayerSizes s, DType type)
      : sizes(s),
        dtype(type),
        input(test::random_values(s.rows * s.inputs, 1), type),
        weight(test::random_values(s.inputs * s.outputs, 2), type),
        bias(test::random_values(s.outputs, 3), type),
        inner(test::random_values(s.rows * s.outputs, 4), type),
        active(test::random_values(s.rows * s.outputs, 5), type),
        output_gradient(test::random_values(s.rows * s.inputs, 6), type),
        second_weight(test::random_values(s.inputs * s.outputs, 7), type),
        inner_gradient(test::random_values(s.rows * s.outputs, 8), type) {}
  HostView wide(test::TypedValues& values) const {
    return values.view({sizes.rows, sizes.outputs});
  }
  HostView narrow(test::TypedValues& values) const {
    return values.view({sizes.rows, sizes.inputs});
  }
  ops::MatmulActivationArgs forward() {
    ops::MatmulArgs product{.a = narrow(input),
                            .b = weight.view({sizes.inputs, sizes.outputs}),
                            .out = wide(inner),
                            .bias = bias.view({sizes.outputs})};
    product.workspace = space.of(product);
    return {.product = product, .active = wide(active)};
  }
  ops::MatmulActivationBackwardArgs backward() {
    ops::MatmulArgs product{.a = narrow(output_gradient),
                            .b = second_weight.view({sizes.outputs, sizes.inputs}),
                            .out = wide(inner_gradient),
                            .b_transposed = true};
    product.workspace = space.of(product);
    return {.product = product, .input = wide(inner), .active = wide(active)};
  }
  test::LayerSizes sizes;
  DType dtype;
  test::TypedValues input, weight, bias, inner, active;
  test::TypedValues output_gradient, second_weight, inner_gradient;
  test::ProductSpace space;
};

/// Of a product that is rounded when it is stored, and then once more.
test::Tolerance rounded_twice(DType dtype) {
  return test::tolerance::stored(
      dtype, is_half(dtype) ? test::tolerance::rounded_half : test::tolerance::reduction);
}

TEST_CASE("Matmul with GELU: forward agrees with double and keeps what GELU reads",
          "[ops][matmul_activation]") {
  Layers layers(layer_sizes(), GENERATE(DType::f32, DType::bf16, DType::f16));
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::matmul_activation_forward(layers.forward(), stream);
  const std::vector<double> inner = reference::linear(
      layers.input.read_double(), layers.weight.read_double(), layers.bias.read_double());
  std::vector<double> active;
  for (const double x : inner) active.push_back(reference::gelu(x));
  const test::Tolerance tolerance = rounded_twice(layers.dtype);
  CHECK(test::difference(layers.inner.read(), inner, tolerance) == "");
  CHECK(test::difference(layers.active.read(), active, tolerance) == "");
}

TEST_CASE("Matmul with GELU: backward agrees with central differences",
          "[ops][matmul_activation]") {
  Layers layers(layer_sizes(), GENERATE(DType::f32, DType::bf16, DType::f16));
  auto inner = layers.inner.read_double();
  const std::vector<double> no_bias(static_cast<std::size_t>(layers.sizes.inputs));
  const auto loss = [&] {
    std::vector<double> active;
    for (const double x : inner) active.push_back(reference::gelu(x));
    return test::weighted_sum(
        reference::linear(active, layers.second_weight.read_double(), no_bias),
        layers.output_gradient.read());
  };
  const std::vector<double> expected = test::central_differences(inner, loss);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::matmul_activation_backward(layers.backward(), stream);
  CHECK(test::difference(layers.inner_gradient.read(), expected, rounded_twice(layers.dtype)) ==
        "");
}

TEST_CASE("Matmul with GELU: has the bits of the product and the GELU apart",
          "[ops][matmul_activation]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const test::LayerSizes sizes =
      GENERATE(test::LayerSizes{5, 3, 7}, test::LayerSizes{700, 65, 300});
  Layers fused(sizes, dtype);
  Layers apart(sizes, dtype);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::matmul_activation_forward(fused.forward(), stream);
  ops::matmul(apart.forward().product, stream);
  ops::activation_forward({.input = apart.wide(apart.inner), .output = apart.wide(apart.active)},
                          stream);
  CHECK(fused.inner.read() == apart.inner.read());
  CHECK(fused.active.read() == apart.active.read());
  const std::vector<float> active = fused.active.read();
  ops::matmul_activation_backward(fused.backward(), stream);
  ops::matmul(apart.backward().product, stream);
  ops::activation_backward({.input = apart.wide(apart.inner),
                            .output_gradient = apart.wide(apart.inner_gradient),
                            .input_gradient = apart.wide(apart.inner_gradient),
                            .output = apart.wide(apart.active)},
                           stream);
  CHECK(fused.inner_gradient.read() == apart.inner_gradient.read());
  CHECK(fused.active.read() == active);
}

TEST_CASE("Matmul with GELU: views that do not fit are refused", "[ops][matmul_activation]") {
  Layers layers({4, 3, 5}, DType::f32);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::MatmulActivationArgs forward = layers.forward();
  forward.active = layers.narrow(layers.input);
  CHECK_THROWS_WITH(ops::matmul_activation_forward(forward, stream),
                    Catch::Matchers::ContainsSubstring("active"));
  ops::MatmulActivationBackwardArgs backward = layers.backward();
  backward.product.accumulate = true;
  CHECK_THROWS_WITH(ops::matmul_activation_backward(backward, stream),
                    Catch::Matchers::ContainsSubstring("no bias"));
}

}  // namespace
}  // namespace dstrain
