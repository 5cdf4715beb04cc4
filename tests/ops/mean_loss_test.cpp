#include "runtime/ops/mean_loss.h"

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

/// Predictions and targets; every third row does not count.
struct Regression {
  Regression(std::int64_t row_count, std::int64_t column_count, DType dtype)
      : rows(row_count),
        columns(column_count),
        predictions(test::random_values(rows * columns, 1), dtype),
        gradient(test::random_values(rows * columns, 2), dtype),
        targets(test::random_values(rows * columns, 3)),
        labels(static_cast<std::size_t>(rows)),
        losses(labels.size(), 7) {
    for (std::size_t row = 1; row < labels.size(); row += 3) labels[row] = ignored_label;
  }
  ops::MeanLossArgs loss() {
    return {.values = predictions.view({rows, columns}),
            .targets = HostView(targets, {rows, columns}),
            .labels = HostView(labels, {rows}),
            .factor = factor,
            .losses = HostView(losses, {rows}),
            .loss_sum = HostView(&sum, DType::f64, {1})};
  }
  ops::MeanLossArgs with_gradient() {
    ops::MeanLossArgs args = loss();
    args.label_weight = HostView(std::span(&label_weight, 1), {1});
    args.gradient = gradient.view({rows, columns});
    return args;
  }
  /// What is added to the sum.
  [[nodiscard]] double expected(const std::vector<double>& x) const {
    double all = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (labels[i / static_cast<std::size_t>(columns)] == ignored_label) continue;
      const double error = x[i] - static_cast<double>(targets[i]);
      all += static_cast<double>(factor) * error * error / static_cast<double>(columns);
    }
    return all;
  }

  std::int64_t rows, columns;
  test::TypedValues predictions, gradient;
  std::vector<float> targets;
  std::vector<std::int32_t> labels;
  std::vector<float> losses;
  float factor = 0.75F;
  float label_weight = 0.125F;
  double sum = 100;  // what was there is added to
};

void compute(const ops::MeanLossArgs& args) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::mean_loss(args, stream);
}

TEST_CASE("Mean loss: squared errors and its gradient by central differences", "[ops][mean_loss]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const auto [rows, columns] = GENERATE(
      table<std::int64_t, std::int64_t>({{1, 1}, {40, 3}, {5, 130}, {7000, 3}, {2, 17'000}}));
  CAPTURE(name_of(dtype), rows, columns);
  Regression r(rows, columns, dtype);
  std::vector<double> x = test::to_double(r.predictions.read());
  const double expected = r.expected(x);
  compute(r.loss());
  CHECK(r.sum - 100 == Catch::Approx(expected).epsilon(1e-6));
  const double alone = r.sum;
  r.sum = 100;
  compute(r.with_gradient());
  CHECK(r.sum == alone);
  std::vector<float> exact(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool counts = r.labels[i / static_cast<std::size_t>(columns)] != ignored_label;
    const double slope = 2 * 0.75 / static_cast<double>(columns) * 0.125;
    exact[i] = counts ? static_cast<float>(slope * (x[i] - static_cast<double>(r.targets[i]))) : 0;
  }
  const test::Tolerance close = test::tolerance::stored(dtype, test::tolerance::elementwise);
  CHECK(test::difference(r.gradient.read(), test::to_double(exact), close) == "");
  const std::size_t stride = x.size() > 1000 ? 997 : 1;
  const auto differences = test::central_differences(
      x, [&] { return 0.125 * r.expected(x); }, stride);
  CHECK(test::difference(test::every(exact, stride), differences, test::tolerance::elementwise) ==
        "");
}

TEST_CASE("Mean loss: values without targets are losses themselves", "[ops][mean_loss]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t columns = GENERATE(1, 3, 130);
  Regression r(40, columns, dtype);
  const std::vector<double> x = test::to_double(r.predictions.read());
  ops::MeanLossArgs args = r.with_gradient();
  args.targets = {};
  compute(args);
  double expected = 0;
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (r.labels[i / static_cast<std::size_t>(columns)] == ignored_label) continue;
    expected += 0.75 * x[i] / static_cast<double>(columns);
    gradient[i] = 0.75 * 0.125 / static_cast<double>(columns);
  }
  CHECK(r.sum - 100 == Catch::Approx(expected).epsilon(1e-5));
  const test::Tolerance close = test::tolerance::stored(dtype, test::tolerance::elementwise);
  CHECK(test::difference(r.gradient.read(), gradient, close) == "");
}

TEST_CASE("Mean loss: the gradient may take the place of the values", "[ops][mean_loss]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  Regression apart(7, 50, dtype);
  compute(apart.with_gradient());
  Regression in_place(7, 50, dtype);
  ops::MeanLossArgs args = in_place.with_gradient();
  args.gradient = args.values;
  compute(args);
  CHECK((in_place.predictions.read() == apart.gradient.read()));
  CHECK(in_place.sum == apart.sum);
}

TEST_CASE("Mean loss: targets of another shape are refused", "[ops][mean_loss]") {
  Regression r(4, 3, DType::f32);
  ops::MeanLossArgs args = r.loss();
  args.targets = HostView(r.targets, {3, 4});
  CHECK_THROWS_AS(compute(args), Error);
}

}  // namespace
}  // namespace dstrain
