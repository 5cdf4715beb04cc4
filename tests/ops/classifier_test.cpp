#include "runtime/ops/classifier.h"

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

/// The tensors of a classifier; every third label is ignored.
struct Layer {
  explicit Layer(const ops::ClassifierSizes& s)
      : sizes(s),
        input(test::random_values(s.rows * s.channels, 1), s.dtype),
        weight(test::random_values(s.classes * s.channels, 2), s.dtype),
        input_gradient(test::random_values(s.rows * s.channels, 3), s.dtype),
        labels(test::random_tokens(s.rows, 4, static_cast<std::uint64_t>(s.classes))),
        weight_gradient(test::random_values(s.classes * s.channels, 5)),
        logits(static_cast<std::size_t>(s.rows * s.classes)),
        workspace(static_cast<std::size_t>(ops::classifier_workspace(s, DeviceKind::cpu))) {
    for (std::size_t row = 1; row < labels.size(); row += 3) labels[row] = ignored_label;
  }
  TensorView space() { return HostView(workspace.data(), DType::u8, {std::ssize(workspace)}); }
  /// Of the loss alone.
  ops::ClassifierLossArgs loss() {
    return {.input = input.view({sizes.rows, sizes.channels}),
            .weight = weight.view({sizes.classes, sizes.channels}),
            .labels = HostView(labels, {sizes.rows}),
            .loss_sum = HostView(&sum, DType::f64, {1}),
            .workspace = space()};
  }
  /// With the gradients.
  ops::ClassifierLossArgs gradients() {
    ops::ClassifierLossArgs args = loss();
    args.label_weight = HostView(std::span(&label_weight, 1), {1});
    args.input_gradient = input_gradient.view({sizes.rows, sizes.channels});
    args.weight_gradient = HostView(weight_gradient, {sizes.classes, sizes.channels});
    return args;
  }
  ops::ClassifierSizes sizes;
  test::TypedValues input, weight, input_gradient;
  std::vector<std::int32_t> labels;
  std::vector<float> weight_gradient, logits;
  std::vector<std::byte> workspace;
  float label_weight = 0.125F;
  double sum = 100;  // what was there is added to
};

void compute(const ops::ClassifierLossArgs& args) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::classifier_loss(args, stream);
}

double dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> expected_logits(const ops::ClassifierSizes& sizes,
                                    const std::vector<double>& input,
                                    const std::vector<double>& weight) {
  std::vector<double> logits;
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    for (std::int64_t j = 0; j < sizes.classes; ++j) {
      logits.push_back(dot(input.data() + row * sizes.channels, weight.data() + j * sizes.channels,
                           sizes.channels));
    }
  }
  return logits;
}

double expected_loss(const Layer& layer,
                     const std::vector<double>& input,
                     const std::vector<double>& weight) {
  const auto logits = expected_logits(layer.sizes, input, weight);
  const auto classes = static_cast<std::size_t>(layer.sizes.classes);
  double sum = 0;
  for (std::size_t row = 0; row < layer.labels.size(); ++row) {
    if (layer.labels[row] == ignored_label) continue;
    sum += reference::cross_entropy(std::span(logits).subspan(row * classes, classes),
                                    layer.labels[row]);
  }
  return sum;
}

/// One piece of classes, and three.
ops::ClassifierSizes any_sizes() {
  ops::ClassifierSizes sizes = GENERATE(ops::ClassifierSizes{1, 1, 2, DType::f32},
                                        ops::ClassifierSizes{7, 5, 17, DType::f32},
                                        ops::ClassifierSizes{40, 20, 130, DType::f32},
                                        ops::ClassifierSizes{4, 3, 17'000, DType::f32});
  sizes.dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  return sizes;
}

TEST_CASE("Classifier: logits are products with the rows of the weight", "[ops][classifier]") {
  const ops::ClassifierSizes sizes = any_sizes();
  Layer layer(sizes);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::classifier_logits({.input = layer.input.view({sizes.rows, sizes.channels}),
                          .weight = layer.weight.view({sizes.classes, sizes.channels}),
                          .logits = HostView(layer.logits, {sizes.rows, sizes.classes}),
                          .workspace = layer.space()},
                         stream);
  const auto expected =
      expected_logits(sizes, layer.input.read_double(), layer.weight.read_double());
  CHECK(test::difference(layer.logits, expected, test::tolerance::reduction) == "");
}

TEST_CASE("Classifier: gradients agree with central differences", "[ops][classifier]") {
  const ops::ClassifierSizes sizes = any_sizes();
  const bool accumulate = GENERATE(false, true);
  CAPTURE(sizes.rows, sizes.channels, sizes.classes, sizes.dtype, accumulate);
  Layer layer(sizes);
  auto input = layer.input.read_double();
  auto weight = layer.weight.read_double();
  const float factor = accumulate ? 0.75F : 1;
  const auto total = [&] {
    return static_cast<double>(factor) * expected_loss(layer, input, weight);
  };
  const auto loss = [&] {
    return static_cast<double>(layer.label_weight) * total();
  };
  const std::size_t stride = sizes.classes > 1000 ? 997 : 7;
  const auto input_gradient = test::central_differences(input, loss);
  auto weight_gradient = test::central_differences(weight, loss, stride);
  const auto before = test::every(layer.weight_gradient, stride);
  for (std::size_t i = 0; accumulate && i < before.size(); ++i) {
    weight_gradient[i] += static_cast<double>(before[i]);
  }
  ops::ClassifierLossArgs args = layer.gradients();
  args.accumulate_weight = accumulate;
  args.factor = factor;
  compute(args);
  CHECK(layer.sum - 100 == Catch::Approx(total()).epsilon(1e-6));
  const bool narrow = is_half(sizes.dtype);
  const auto close = narrow ? test::tolerance::rounded_half : test::tolerance::reduction;
  CHECK(test::difference(layer.input_gradient.read(), input_gradient, close) == "");
  CHECK(test::difference(test::every(layer.weight_gradient, stride), weight_gradient, close) == "");
}

TEST_CASE("Classifier: the input's gradient may take its place", "[ops][classifier]") {
  const ops::ClassifierSizes sizes = any_sizes();
  Layer beside(sizes);
  Layer over(sizes);
  compute(beside.gradients());
  ops::ClassifierLossArgs args = over.gradients();
  args.input_gradient = args.input;
  compute(args);
  CHECK(over.input.read() == beside.input_gradient.read());
  CHECK(over.weight_gradient == beside.weight_gradient);
}

TEST_CASE("Classifier: losses are the same with the gradients and without", "[ops][classifier]") {
  const ops::ClassifierSizes sizes = any_sizes();
  Layer alone(sizes);
  Layer both(sizes);
  compute(alone.loss());
  compute(both.gradients());
  CHECK(both.sum == alone.sum);
  CHECK(alone.weight_gradient == Layer(sizes).weight_gradient);
}

TEST_CASE("Classifier: what does not fit is refused", "[ops][classifier]") {
  Layer layer({3, 4, 5, DType::f32});
  ops::ClassifierLossArgs args = layer.gradients();
  SECTION("a label of another class") {
    layer.labels = {0, GENERATE(5, -1), 1};
    CHECK_THROWS_WITH(compute(args), Catch::Matchers::ContainsSubstring("of 5 classes"));
  }
  SECTION("less workspace") {
    args.workspace = HostView(layer.workspace.data(), DType::u8, {64});
    CHECK_THROWS_WITH(compute(args), Catch::Matchers::ContainsSubstring("workspace"));
  }
  SECTION("a gradient in another dtype") {
    args.input_gradient = TensorView(DType::bf16, {3, 4});
    CHECK_THROWS_WITH(compute(args), Catch::Matchers::ContainsSubstring("input_gradient"));
  }
}

}  // namespace
}  // namespace dstrain
