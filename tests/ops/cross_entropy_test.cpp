
#include "runtime/base/label.h"
#include "runtime/ops/cross_entropy_cpu.h"
#include "runtime/ops/elements.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

/// Logits, labels (every third ignored) and the results of one call.
struct Rows {
  Rows(std::int64_t row_count, std::int64_t columns)
      : rows(row_count),
        vocabulary(columns),
        logits(test::random_values(row_count * columns, 1, 3)),
        labels(test::random_tokens(row_count, 2, static_cast<std::uint64_t>(columns))),
        losses(static_cast<std::size_t>(row_count)),
        softmax(losses.size() * 2) {
    for (std::size_t row = 1; row < labels.size(); row += 3) labels[row] = dstrain::ignored_label;
  }
  /// Of the losses alone.
  ops::cpu::CrossEntropyRows view() {
    return {.logits = {HostView(logits, {rows, vocabulary}), vocabulary},
            .labels = HostView(labels, {rows}),
            .losses = HostView(losses, {rows}),
            .softmax = HostView(softmax, {rows, 2})};
  }
  /// With the gradient.
  ops::cpu::CrossEntropyRows view(float weight) {
    label_weight = weight;
    ops::cpu::CrossEntropyRows both = view();
    both.label_weight = HostView(std::span(&label_weight, 1), {1});
    return both;
  }
  void add_losses(const ops::cpu::CrossEntropyRows& of) {
    ops::cpu::cross_entropy_losses(of, HostView(&sum, DType::f64, {1}));
  }
  /// Losses, and gradients in the place of the logits.
  void replace_logits(const ops::cpu::CrossEntropyRows& of) {
    add_losses(of);
    for (std::int64_t piece = 0; piece < of.logits.count(); ++piece) {
      ops::cpu::cross_entropy_gradient(of, piece, of.logits.piece(piece));
    }
  }
  std::int64_t rows, vocabulary;
  std::vector<float> logits;
  std::vector<std::int32_t> labels;
  std::vector<float> losses;
  std::vector<float> softmax;
  float label_weight = 0;
  double sum = 100;  // what was there is added to
};

double expected_sum(const std::vector<double>& logits, const std::vector<std::int32_t>& labels) {
  const std::size_t columns = logits.size() / labels.size();
  double sum = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] == dstrain::ignored_label) continue;
    sum += reference::cross_entropy(std::span(logits).subspan(row * columns, columns), labels[row]);
  }
  return sum;
}

TEST_CASE("Cross-entropy: the sum of the counted losses", "[ops][cross_entropy]") {
  Rows rows(GENERATE(1, 5, 40), GENERATE(2, 17, 5000));
  const std::vector<float> before = rows.logits;
  rows.add_losses(rows.view());
  CHECK(rows.logits == before);
  CHECK(rows.sum - 100 ==
        Catch::Approx(expected_sum(test::to_double(before), rows.labels)).epsilon(1e-7));
}

TEST_CASE("Cross-entropy: gradient by central differences", "[ops][cross_entropy]") {
  Rows rows(GENERATE(1, 7), GENERATE(2, 17, 130));
  auto logits = test::to_double(rows.logits);
  const float weight = 0.125F;
  const auto expected = test::central_differences(
      logits, [&] { return static_cast<double>(weight) * expected_sum(logits, rows.labels); });
  rows.replace_logits(rows.view(weight));
  CHECK(test::difference(rows.logits, expected, test::tolerance::elementwise) == "");
}

TEST_CASE("Cross-entropy: a bf16 gradient is the f32 one rounded", "[ops][cross_entropy]") {
  const std::int64_t columns = GENERATE(2, 17, 2500);
  const std::int64_t width = std::min<std::int64_t>(columns, GENERATE(1, 7, 1000, 2500));
  CAPTURE(columns, width);
  Rows rows(40, columns);
  ops::cpu::CrossEntropyRows view = rows.view(0.5F);
  view.logits.piece_columns = width;
  rows.add_losses(view);
  std::vector<float> exact(static_cast<std::size_t>(40 * width));
  std::vector<BFloat16> rounded(exact.size());
  for (std::int64_t piece = 0; piece < view.logits.count(); ++piece) {
    const Shape shape{40, view.logits.width(piece)};
    ops::cpu::cross_entropy_gradient(view, piece, HostView(exact, {40, width}).part(0, shape));
    ops::cpu::cross_entropy_gradient(view, piece, HostView(rounded, {40, width}).part(0, shape));
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.numel()); ++i) {
      if (to_float(rounded[i]) != to_float(to_bfloat16(exact[i]))) FAIL(piece << ": " << i);
    }
  }
}

TEST_CASE("Cross-entropy: losses are the same with the gradient and without",
          "[ops][cross_entropy]") {
  Rows alone(7, 1300);
  Rows both(7, 1300);
  alone.add_losses(alone.view());
  both.replace_logits(both.view(0.25F));
  CHECK(both.losses == alone.losses);
  CHECK(both.sum == alone.sum);
}

TEST_CASE("Cross-entropy: pieces of columns give what whole rows give", "[ops][cross_entropy]") {
  const std::int64_t vocabulary = 130;
  const std::int64_t width = GENERATE(1, 64, 129);
  Rows whole(5, vocabulary);
  Rows cut(5, vocabulary);
  ops::cpu::CrossEntropyRows view = cut.view(0.5F);
  view.logits.piece_columns = width;
  const auto place = [&](std::int64_t row, std::int64_t column) -> float& {
    const std::int64_t piece = column / width;
    return ops::floats(view.logits.piece(piece))[row * view.logits.width(piece) + column % width];
  };
  const auto at = [vocabulary](std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(row * vocabulary + column);
  };
  const std::vector<float> values = whole.logits;
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t j = 0; j < vocabulary; ++j) place(row, j) = values[at(row, j)];
  }
  whole.replace_logits(whole.view(0.5F));
  cut.replace_logits(view);
  CHECK(cut.sum == Catch::Approx(whole.sum).epsilon(1e-7));
  std::vector<float> gathered(values.size());
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t j = 0; j < vocabulary; ++j) gathered[at(row, j)] = place(row, j);
  }
  CHECK(test::difference(gathered, whole.logits, test::tolerance::elementwise) == "");
}

TEST_CASE("Cross-entropy: large logits neither overflow nor vanish", "[ops][cross_entropy]") {
  Rows rows(1, 3);
  rows.logits = {1e4F, -1e4F, 9999.0F};
  rows.labels = {1};
  rows.replace_logits(rows.view(1));
  CHECK(rows.sum - 100 == Catch::Approx(20000.3133).epsilon(1e-7));
  CHECK(rows.logits[1] == Catch::Approx(-1));
  CHECK(rows.logits[0] == Catch::Approx(0.7310586));
}

TEST_CASE("Cross-entropy: a label outside the columns is refused", "[ops][cross_entropy]") {
  Rows rows(1, 3);
  rows.labels = {GENERATE(3, -1)};
  CHECK_THROWS_WITH(rows.add_losses(rows.view()),
                    Catch::Matchers::ContainsSubstring("of 3 classes"));
}

}  // namespace
}  // namespace dstrain
