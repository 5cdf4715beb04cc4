#include "runtime/ops/weight_gradient.h"

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

/// The tensors of a linear layer's backward.
struct Layer {
  Layer(test::LayerSizes s, DType dtype)
      : sizes(s),
        input(test::random_values(s.rows * s.inputs, 1), dtype),
        output_gradient(test::random_values(s.rows * s.outputs, 2), dtype),
        weight_gradient(test::random_values(s.inputs * s.outputs, 3)),
        bias_gradient(test::random_values(s.outputs, 4)) {}
  ops::WeightGradientArgs args() {
    ops::MatmulArgs product{.a = input.view({sizes.rows, sizes.inputs}),
                            .b = output_gradient.view({sizes.rows, sizes.outputs}),
                            .out = HostView(weight_gradient, {sizes.inputs, sizes.outputs}),
                            .a_transposed = true};
    product.workspace = space.of(product);
    return {.product = product, .bias_gradient = HostView(bias_gradient, {sizes.outputs})};
  }
  test::LayerSizes sizes;
  test::TypedValues input, output_gradient;
  std::vector<float> weight_gradient, bias_gradient;
  test::ProductSpace space;
};

void add_before(std::vector<double>& sum, const std::vector<float>& before) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(before[i]);
}

TEST_CASE("Weight gradient: agrees with central differences", "[ops][weight_gradient]") {
  const test::LayerSizes sizes =
      GENERATE(test::LayerSizes{1, 1, 1}, test::LayerSizes{5, 3, 7}, test::LayerSizes{67, 4, 5});
  const bool accumulate_weight = GENERATE(false, true);
  const bool accumulate_bias = GENERATE(false, true);
  Layer layer(sizes, GENERATE(DType::f32, DType::bf16, DType::f16));
  auto weight = test::to_double(test::random_values(sizes.inputs * sizes.outputs, 5));
  auto bias = test::to_double(test::random_values(sizes.outputs, 6));
  const auto loss = [&] {
    return test::weighted_sum(reference::linear(layer.input.read_double(), weight, bias),
                              layer.output_gradient.read());
  };
  std::vector<double> weight_gradient = test::central_differences(weight, loss);
  std::vector<double> bias_gradient = test::central_differences(bias, loss);
  if (accumulate_weight) add_before(weight_gradient, layer.weight_gradient);
  if (accumulate_bias) add_before(bias_gradient, layer.bias_gradient);
  ops::WeightGradientArgs args = layer.args();
  args.product.accumulate = accumulate_weight;
  args.accumulate_bias = accumulate_bias;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::weight_gradient(args, stream);
  CHECK(test::difference(layer.weight_gradient, weight_gradient, test::tolerance::reduction) == "");
  CHECK(test::difference(layer.bias_gradient, bias_gradient, test::tolerance::reduction) == "");
}

TEST_CASE("Weight gradient: has the bits of the product alone and adds rows in groups of 64",
          "[ops][weight_gradient]") {
  const std::int64_t rows = GENERATE(1, 63, 64, 200);
  const std::int64_t outputs = GENERATE(1, 64, 131);
  Layer layer({rows, 17, outputs}, GENERATE(DType::f32, DType::bf16, DType::f16));
  const ops::WeightGradientArgs args = layer.args();
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::matmul(args.product, stream);
  const std::vector<float> product = layer.weight_gradient;
  const std::vector<float> values = layer.output_gradient.read();
  std::vector<float> expected(layer.bias_gradient.size());
  for (std::size_t begin = 0; begin < values.size(); begin += 64 * expected.size()) {
    std::vector<float> group(expected.size());
    const std::size_t end = std::min(values.size(), begin + 64 * expected.size());
    for (std::size_t i = begin; i < end; ++i) group[i % group.size()] += values[i];
    for (std::size_t j = 0; j < group.size(); ++j) expected[j] += group[j];
  }
  ops::weight_gradient(args, stream);
  CHECK(layer.weight_gradient == product);
  CHECK(layer.bias_gradient == expected);
}

TEST_CASE("Weight gradient: of a weight that lies transposed it is transposed",
          "[ops][weight_gradient]") {
  const test::LayerSizes sizes = GENERATE(test::LayerSizes{5, 3, 7}, test::LayerSizes{200, 17, 65});
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Layer layer(sizes, dtype);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::WeightGradientArgs args = layer.args();
  ops::weight_gradient(args, stream);
  std::vector<float> expected;
  for (std::int64_t i = 0; i < sizes.outputs; ++i) {
    for (std::int64_t j = 0; j < sizes.inputs; ++j) {
      expected.push_back(layer.weight_gradient[static_cast<std::size_t>(j * sizes.outputs + i)]);
    }
  }
  const std::vector<float> bias = layer.bias_gradient;
  std::swap(args.product.a, args.product.b);
  args.product.out = HostView(layer.weight_gradient, {sizes.outputs, sizes.inputs});
  args.product.workspace = layer.space.of(args.product);
  args.outputs_first = true;
  ops::weight_gradient(args, stream);
  CHECK(test::difference(layer.weight_gradient, expected, test::tolerance::reduction) == "");
  CHECK(layer.bias_gradient == bias);
}

TEST_CASE("Weight gradient: another product is refused", "[ops][weight_gradient]") {
  Layer layer({4, 4, 4}, DType::f32);
  ops::WeightGradientArgs args = layer.args();
  args.product.a_transposed = false;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  CHECK_THROWS_WITH(ops::weight_gradient(args, stream),
                    Catch::Matchers::ContainsSubstring("not the product"));
  args = layer.args();
  args.bias_gradient = args.bias_gradient.part(0, {3});
  CHECK_THROWS_WITH(ops::weight_gradient(args, stream),
                    Catch::Matchers::ContainsSubstring("bias_gradient"));
}

TEST_CASE("Weight gradient: skipping one gradient leaves the bits of the other",
          "[ops][weight_gradient]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Layer both({67, 4, 5}, dtype);
  Layer one({67, 4, 5}, dtype);
  const std::vector<float> weight_before = one.weight_gradient;
  const std::vector<float> bias_before = one.bias_gradient;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::weight_gradient(both.args(), stream);
  ops::WeightGradientArgs args = one.args();
  SECTION("the weight's") {
    args.bias_gradient = {};
    ops::weight_gradient(args, stream);
    CHECK(one.weight_gradient == both.weight_gradient);
    CHECK(one.bias_gradient == bias_before);
  }
  SECTION("the bias's") {
    args.product.out = {};
    ops::weight_gradient(args, stream);
    CHECK(one.bias_gradient == both.bias_gradient);
    CHECK(one.weight_gradient == weight_before);
  }
}

}  // namespace
}  // namespace dstrain
