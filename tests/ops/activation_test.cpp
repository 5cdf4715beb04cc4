#include "runtime/ops/activation.h"

#include <cmath>
#include <limits>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/fast_exp.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

using ops::Activation;

Activation any_kind() {
  return GENERATE(Activation::gelu_tanh, Activation::gelu, Activation::quick_gelu, Activation::silu,
                  Activation::relu);
}

/// With values that no network should have, too.
std::vector<float> points() {
  std::vector<float> values = test::random_values(40001, 1, 3);
  for (const float special : {0.0F, -0.0F, 20.0F, -20.0F, 1e4F, -1e4F}) values.push_back(special);
  return values;
}

TEST_CASE("Activation: forward agrees with double", "[ops][activation]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Activation kind = any_kind();
  CAPTURE(static_cast<int>(kind));
  test::TypedValues input(points(), dtype);
  const auto numel = static_cast<std::int64_t>(input.size());
  std::vector<double> expected;
  for (const double x : input.read_double()) expected.push_back(reference::activation(kind, x));
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::activation_forward({kind, input.view({numel}), {}, input.view({numel})}, stream);
  const auto tolerance = test::tolerance::stored(dtype, test::tolerance::elementwise);
  CHECK(test::difference(input.read(), expected, tolerance) == "");
}

TEST_CASE("Activation: NaN stays NaN", "[ops][activation]") {
  const Activation kind = any_kind();
  CAPTURE(static_cast<int>(kind));
  test::TypedValues input(std::vector<float>(40, std::numeric_limits<float>::quiet_NaN()),
                          DType::f32);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::activation_forward({kind, input.view({40}), {}, input.view({40})}, stream);
  for (const float value : input.read()) CHECK(std::isnan(value));
}

/// A gated activation: its tensors, and what double says of them.
struct Gated {
  explicit Gated(DType dtype)
      : input(test::random_values(numel, 2, 2), dtype),
        factor(test::random_values(numel, 5), dtype),
        gradient(test::random_values(numel, 3), dtype),
        factor_gradient(test::random_values(numel, 6), dtype),
        output(test::random_values(numel, 4), dtype) {}
  static constexpr std::int64_t numel = 3001;
  test::TypedValues input, factor, gradient, factor_gradient, output;
};

TEST_CASE("Activation: backward agrees with central differences and repeats forward",
          "[ops][activation]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Activation kind = any_kind();
  const bool gated = GENERATE(false, true);
  CAPTURE(static_cast<int>(kind), gated);
  Gated t(dtype);
  std::vector<double> inputs = t.input.read_double();
  const std::vector<double> factors = t.factor.read_double();
  std::vector<double> expected = t.gradient.read_double();
  std::vector<double> expected_factor = expected;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    double& x = inputs[i];
    expected_factor[i] *= reference::activation(kind, x);
    expected[i] *= (gated ? factors[i] : 1.0) *
                   test::central_difference(x, [&] { return reference::activation(kind, x); });
  }
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const auto view = [](test::TypedValues& values) {
    return values.view({Gated::numel});
  };
  const TensorView factor = gated ? TensorView(view(t.factor)) : TensorView{};
  const TensorView factor_gradient = gated ? TensorView(view(t.factor_gradient)) : TensorView{};
  const std::vector<float> before = t.gradient.read();
  ops::ActivationBackwardArgs args{.kind = kind,
                                   .input = view(t.input),
                                   .factor = factor,
                                   .output_gradient = view(t.gradient),
                                   .input_gradient = view(t.gradient),
                                   .factor_gradient = factor_gradient,
                                   .output = view(t.output)};
  ops::activation_backward(args, stream);
  const auto tolerance = test::tolerance::stored(dtype, test::tolerance::elementwise);
  const std::vector<float> with_output = t.gradient.read();
  CHECK(test::difference(with_output, expected, tolerance) == "");
  if (gated) CHECK(test::difference(t.factor_gradient.read(), expected_factor, tolerance) == "");
  t.gradient.assign(before);
  args.output = {};
  ops::activation_backward(args, stream);
  CHECK(t.gradient.read() == with_output);
  ops::activation_forward({kind, view(t.input), factor, view(t.input)}, stream);
  CHECK(t.output.read() == t.input.read());
}

/// A gate and a factor, apart and packed in rows, and what backward makes of them.
struct Packed {
  Packed(std::int64_t height, std::int64_t width, DType dtype)
      : rows(height),
        columns(width),
        gate(test::random_values(numel(), 2, 2), dtype),
        factor(test::random_values(numel(), 5), dtype),
        gradient(test::random_values(numel(), 3), dtype),
        both(packed(gate.read(), factor.read()), dtype) {}
  [[nodiscard]] std::int64_t numel() const { return rows * columns; }
  [[nodiscard]] TensorView apart(test::TypedValues& values) const {
    return values.view({rows, columns});
  }
  [[nodiscard]] TensorView half(test::TypedValues& values, std::int64_t index) const {
    return TensorView(values.view({rows, 2 * columns})).columns(index * columns, columns);
  }
  [[nodiscard]] std::vector<float> packed(const std::vector<float>& first,
                                          const std::vector<float>& second) const {
    std::vector<float> all;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const auto* const from : {&first, &second}) {
        const auto begin = from->begin() + row * columns;
        all.insert(all.end(), begin, begin + columns);
      }
    }
    return all;
  }
  std::int64_t rows, columns;
  test::TypedValues gate, factor, gradient, both;
};

TEST_CASE("Activation: a gate and a factor that are packed give the bits of those apart",
          "[ops][activation]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Activation kind = any_kind();
  // One row, rows of one, some of a chunk, and rows of more than a chunk.
  const auto [rows, columns] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 7}, {16385, 1}, {911, 37}, {3, 16385}}));
  CAPTURE(static_cast<int>(kind), rows, columns);
  Packed t(rows, columns, dtype);
  const std::vector<float> nothing(static_cast<std::size_t>(2 * t.numel()), 9.0F);
  const std::vector<float> half(nothing.begin(), nothing.begin() + t.numel());
  test::TypedValues output(half, dtype), expected(half, dtype), gate(half, dtype);
  test::TypedValues factor(half, dtype), both(nothing, dtype);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::activation_forward({kind, t.apart(t.gate), t.apart(t.factor), t.apart(expected)}, stream);
  ops::activation_forward({kind, t.half(t.both, 0), t.half(t.both, 1), t.apart(output)}, stream);
  CHECK(output.read() == expected.read());
  output.assign(half);
  ops::ActivationBackwardArgs args{.kind = kind,
                                   .input = t.apart(t.gate),
                                   .factor = t.apart(t.factor),
                                   .output_gradient = t.apart(t.gradient),
                                   .input_gradient = t.apart(gate),
                                   .factor_gradient = t.apart(factor)};
  ops::activation_backward(args, stream);
  args.input = t.half(t.both, 0);
  args.factor = t.half(t.both, 1);
  args.input_gradient = t.half(both, 0);
  args.factor_gradient = t.half(both, 1);
  args.output = t.apart(output);
  ops::activation_backward(args, stream);
  CHECK(both.read() == t.packed(gate.read(), factor.read()));
  CHECK(output.read() == expected.read());
}

TEST_CASE("Activation: views that do not fit are refused", "[ops][activation]") {
  Gated t(DType::f32);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const TensorView whole = t.input.view({Gated::numel});
  const TensorView half = t.output.view({Gated::numel}).part(0, {1500});
  CHECK_THROWS_WITH(ops::activation_forward({Activation::silu, whole, {}, half}, stream),
                    Catch::Matchers::ContainsSubstring("output"));
  CHECK_THROWS_WITH(ops::activation_backward({.kind = Activation::silu,
                                              .input = whole,
                                              .factor = whole,
                                              .output_gradient = whole,
                                              .input_gradient = whole},
                                             stream),
                    Catch::Matchers::ContainsSubstring("a factor has a gradient"));
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
