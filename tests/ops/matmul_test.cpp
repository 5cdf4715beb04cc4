#include "runtime/ops/matmul.h"

#include <catch2/catch.hpp>

#include "runtime/base/error.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

using ops::MatmulArgs;

/// A (rows, columns) matrix with `gap` unused elements after each row.
struct Matrix {
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t gap, std::uint64_t seed)
      : values(test::random_values(rows * (columns + gap), seed)),
        view(values.data(), DType::f32, {rows, columns}, Device{}, columns + gap) {}
  [[nodiscard]] double at(std::int64_t i, std::int64_t j) const {
    return static_cast<double>(values[static_cast<std::size_t>(i * view.row_stride() + j)]);
  }
  std::vector<float> values;
  TensorView view;
};

struct Sizes {
  std::int64_t m, n, k;
};

TEST_CASE("Matmul: every combination of flags and strides", "[ops][matmul]") {
  const auto [m, n, k] = GENERATE(Sizes{1, 1, 1}, Sizes{5, 7, 3}, Sizes{33, 65, 17},
                                  Sizes{64, 48, 96}, Sizes{65, 1024, 9});
  const bool a_transposed = GENERATE(false, true);
  const bool b_transposed = GENERATE(false, true);
  const bool with_bias = GENERATE(false, true);
  const bool accumulate = GENERATE(false, true);
  const std::int64_t gap = GENERATE(0, 3);
  CAPTURE(m, n, k, a_transposed, b_transposed, with_bias, accumulate, gap);
  const Matrix a(a_transposed ? k : m, a_transposed ? m : k, gap, 1);
  const Matrix b(b_transposed ? n : k, b_transposed ? k : n, gap, 2);
  Matrix out(m, n, gap, 3);
  std::vector<float> bias = test::random_values(n, 4);
  std::vector<double> expected = test::to_double(out.values);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double& sum = expected[static_cast<std::size_t>(i * (n + gap) + j)];
      sum = (accumulate ? sum : 0.0) +
            (with_bias ? static_cast<double>(bias[static_cast<std::size_t>(j)]) : 0.0);
      for (std::int64_t l = 0; l < k; ++l) {
        sum += (a_transposed ? a.at(l, i) : a.at(i, l)) * (b_transposed ? b.at(j, l) : b.at(l, j));
      }
    }
  }
  Stream stream(Stream::Mode::inline_on_caller);
  ops::Matmuls matmuls;
  matmuls.run({.a = a.view,
               .b = b.view,
               .out = out.view,
               .bias = with_bias ? TensorView(bias, {n}) : TensorView(),
               .a_transposed = a_transposed,
               .b_transposed = b_transposed,
               .accumulate = accumulate},
              stream);
  CHECK(test::difference(out.values, expected, test::tolerance::reduction) == "");
}

TEST_CASE("Matmul: a prepared product serves other addresses and repeats its bits",
          "[ops][matmul]") {
  const Matrix a(20, 30, 0, 1);
  const Matrix b(30, 10, 0, 2);
  Matrix first(20, 10, 0, 3);
  Matrix second(20, 10, 0, 4);
  Stream stream(Stream::Mode::worker_thread);
  ops::Matmuls matmuls;
  matmuls.run({.a = a.view, .b = b.view, .out = first.view, .bias = {}}, stream);
  matmuls.run({.a = a.view, .b = b.view, .out = second.view, .bias = {}}, stream);
  stream.synchronize();
  CHECK(first.values == second.values);
}

TEST_CASE("Matmul: products prepared on one thread run on the stream's", "[ops][matmul]") {
  const Sizes large = GENERATE(Sizes{300, 500, 400}, Sizes{129, 3001, 257});
  const auto [m, n, k] = large;
  const Matrix a(k, m, 0, 1);
  const Matrix b(n, k, 0, 2);
  Matrix expected(m, n, 0, 3);
  Matrix out(m, n, 0, 4);
  MatmulArgs args{.a = a.view,
                  .b = b.view,
                  .out = expected.view,
                  .bias = {},
                  .a_transposed = true,
                  .b_transposed = true};
  ops::Matmuls matmuls;
  Stream here(Stream::Mode::inline_on_caller);
  Stream worker(Stream::Mode::worker_thread);
  matmuls.run(args, here);
  args.out = out.view;
  matmuls.run(args, worker);
  worker.synchronize();
  CHECK(out.values == expected.values);
}

TEST_CASE("Matmul: views that do not fit are refused", "[ops][matmul]") {
  const Matrix a(4, 3, 0, 1);
  const Matrix b(4, 5, 0, 2);
  const Matrix out(4, 5, 0, 3);
  Stream stream(Stream::Mode::inline_on_caller);
  ops::Matmuls matmuls;
  CHECK_THROWS_WITH(matmuls.run({.a = a.view, .b = b.view, .out = out.view, .bias = {}}, stream),
                    Catch::Contains("a (4, 3) b (4, 5)"));
  CHECK_THROWS_AS(matmuls.run({.a = a.view, .b = b.view, .out = {}, .bias = {}}, stream), Error);
}

}  // namespace
}  // namespace dstrain
