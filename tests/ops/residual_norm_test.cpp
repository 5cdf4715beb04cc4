#include "runtime/ops/residual_norm.h"

#include <array>

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

/// A branch that joins a residual stream before a norm.
struct Joint {
  Joint(Shape sizes, DType type, float rate)
      : shape(sizes),
        dtype(type),
        site{.rate = rate, .seed = 4, .counter = HostView(counter, {2})},
        branch(random(1), type),
        residual(random(2), type),
        sum(random(3), type),
        normed(random(4), type),
        weight(test::random_values(sizes[2], 5), type),
        bias(test::random_values(sizes[2], 6), type),
        mean(static_cast<std::size_t>(sizes[0] * sizes[1])),
        rstd(mean.size()),
        normed_gradient(random(7), type),
        output_gradient(random(8), type),
        sum_gradient(random(9), type),
        branch_gradient(random(10), type) {}

  [[nodiscard]] std::vector<float> random(std::uint64_t seed) const {
    return test::random_values(shape.numel(), seed);
  }
  HostView row_values(std::vector<float>& values) const { return {values, {shape[0] * shape[1]}}; }
  ops::ResidualNormArgs forward() {
    return {.join = {.input = branch.view(shape),
                     .residual = residual.view(shape),
                     .output = sum.view(shape),
                     .site = site},
            .norm = {.input = sum.view(shape),
                     .weight = weight.view({shape[2]}),
                     .bias = bias.view({shape[2]}),
                     .mean = row_values(mean),
                     .rstd = row_values(rstd),
                     .output = normed.view(shape),
                     .eps = 1e-5F}};
  }
  ops::ResidualNormBackwardArgs backward() {
    return {.norm = {.input = sum.view(shape),
                     .weight = weight.view({shape[2]}),
                     .mean = row_values(mean),
                     .rstd = row_values(rstd),
                     .output_gradient = normed_gradient.view(shape),
                     .residual = output_gradient.view(shape),
                     .input_gradient = sum_gradient.view(shape),
                     .weight_gradient = HostView(weight_gradient, {shape[2]}),
                     .bias_gradient = HostView(bias_gradient, {shape[2]})},
            .branch_gradient = branch_gradient.view(shape),
            .site = site};
  }
  /// The multipliers of the branch.
  [[nodiscard]] std::vector<float> mask(StreamView stream) const {
    std::vector<float> values(branch.size(), 1.0F);
    const HostView view(values, shape);
    ops::dropout({.input = view, .residual = {}, .output = view, .site = site}, stream);
    return values;
  }

  Shape shape;
  DType dtype;
  std::array<std::int64_t, 2> counter{5, 6};
  ops::DropoutSite site;
  test::TypedValues branch, residual, sum, normed, weight, bias;
  std::vector<float> mean, rstd;
  test::TypedValues normed_gradient, output_gradient, sum_gradient, branch_gradient;
  std::vector<float> weight_gradient = test::random_values(shape[2], 11);
  std::vector<float> bias_gradient = test::random_values(shape[2], 12);
};

float some_rate() {
  return GENERATE(0.0F, 0.3F);
}

TEST_CASE("Residual norm: agrees with double and its backward with central differences",
          "[ops][residual_norm]") {
  const Shape shape = GENERATE(Shape{1, 1, 5}, Shape{3, 5, 12}, Shape{2, 3, 67});
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Joint joint(shape, dtype, some_rate());
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const std::vector<float> mask = joint.mask(stream);
  ops::residual_norm_forward(joint.forward(), stream);
  std::vector<double> sum = joint.residual.read_double();
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += static_cast<double>(joint.branch.read()[i] * mask[i]);
  }
  const auto tolerance = test::tolerance::stored(dtype, test::tolerance::reduction);
  CHECK(test::difference(joint.sum.read(), sum, tolerance) == "");
  sum = joint.sum.read_double();  // as it was rounded
  auto weight = joint.weight.read_double();
  auto bias = joint.bias.read_double();
  const auto normed = [&] {
    return reference::layer_norm(sum, weight, bias, static_cast<double>(1e-5F));
  };
  CHECK(test::difference(joint.normed.read(), normed(), tolerance) == "");
  const auto loss = [&] {
    return test::weighted_sum(normed(), joint.normed_gradient.read()) +
           test::weighted_sum(sum, joint.output_gradient.read());
  };
  const std::vector<double> sum_gradient = test::central_differences(sum, loss);
  const std::vector<double> weight_gradient = test::central_differences(weight, loss);
  const std::vector<double> bias_gradient = test::central_differences(bias, loss);
  ops::residual_norm_backward(joint.backward(), stream);
  CHECK(test::difference(joint.sum_gradient.read(), sum_gradient, tolerance) == "");
  CHECK(test::difference(joint.weight_gradient, weight_gradient, test::tolerance::reduction) == "");
  CHECK(test::difference(joint.bias_gradient, bias_gradient, test::tolerance::reduction) == "");
}

TEST_CASE("Residual norm: has the bits of the dropout and the norm apart", "[ops][residual_norm]") {
  const Shape shape = GENERATE(Shape{1, 1, 5}, Shape{3, 77, 60}, Shape{2, 130, 192});
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const float rate = some_rate();
  Joint fused(shape, dtype, rate);
  Joint apart(shape, dtype, rate);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::residual_norm_forward(fused.forward(), stream);
  ops::dropout(apart.forward().join, stream);
  ops::layer_norm_forward(apart.forward().norm, stream);
  CHECK(fused.sum.read() == apart.sum.read());
  CHECK(fused.normed.read() == apart.normed.read());
  CHECK(fused.mean == apart.mean);
  CHECK(fused.rstd == apart.rstd);
  ops::residual_norm_backward(fused.backward(), stream);
  ops::layer_norm_backward(apart.backward().norm, stream);
  const auto shaped = [&apart](test::TypedValues& values) {
    return values.view(apart.shape);
  };
  if (rate > 0) {
    ops::dropout({.input = shaped(apart.sum_gradient),
                  .residual = {},
                  .output = shaped(apart.branch_gradient),
                  .site = apart.site},
                 stream);
  }
  CHECK(fused.sum_gradient.read() == apart.sum_gradient.read());
  CHECK(fused.branch_gradient.read() == apart.branch_gradient.read());
  CHECK(fused.weight_gradient == apart.weight_gradient);
  CHECK(fused.bias_gradient == apart.bias_gradient);
}

TEST_CASE("Residual norm: the sum may take the place of the branch", "[ops][residual_norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Joint apart({3, 77, 60}, dtype, 0.3F);
  Joint in_place({3, 77, 60}, dtype, 0.3F);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::residual_norm_forward(apart.forward(), stream);
  ops::ResidualNormArgs args = in_place.forward();
  args.join.output = args.norm.input = args.join.input;
  ops::residual_norm_forward(args, stream);
  CHECK(in_place.branch.read() == apart.sum.read());
  CHECK(in_place.normed.read() == apart.normed.read());
}

TEST_CASE("Residual norm: a norm of something else is refused", "[ops][residual_norm]") {
  Joint joint({2, 3, 4}, DType::f32, 0.3F);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::ResidualNormArgs args = joint.forward();
  args.norm.input = args.join.residual;
  CHECK_THROWS_WITH(ops::residual_norm_forward(args, stream),
                    Catch::Matchers::ContainsSubstring("not of the sum"));
  ops::ResidualNormBackwardArgs backward = joint.backward();
  backward.branch_gradient = {};
  CHECK_THROWS_WITH(ops::residual_norm_backward(backward, stream),
                    Catch::Matchers::ContainsSubstring("output"));
}

}  // namespace
}  // namespace dstrain
