#include "runtime/ops/matmul.h"

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/ops/matmul_cpu.h"
#include "tests/ops/product_space.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/skip.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

using ops::MatmulArgs;
using ops::cpu::Bf16Products;

/// A dense matrix with values of `dtype`, and the same values in double.
struct Matrix {
  Matrix(Shape shape, DType dtype, std::uint64_t seed)
      : wide(test::random_values(shape.numel(), seed)), narrow(wide.size()) {
    for (std::size_t i = 0; i < wide.size(); ++i) {
      narrow[i] = test::half_bits(wide[i], dtype);
      wide[i] = test::rounded(wide[i], dtype);
    }
    view = is_half(dtype) ? HostView(narrow.data(), dtype, shape) : HostView(wide, shape);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    return static_cast<double>(wide[static_cast<std::size_t>(row * view.shape()[1] + column)]);
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> result;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      result.push_back(static_cast<double>(
          is_half(view.dtype()) ? test::half_value(narrow[i], view.dtype()) : wide[i]));
    }
    return result;
  }
  std::vector<float> wide;
  std::vector<std::uint16_t> narrow;
  HostView view;
};

struct Sizes {
  std::int64_t m, n, k;
};

Shape stored(std::int64_t rows, std::int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

std::vector<double> product(const MatmulArgs& args,
                            const Matrix& a,
                            const Matrix& b,
                            const Matrix& out,
                            const Matrix& bias) {
  const std::int64_t k = a.view.shape()[args.a_transposed ? 0 : 1];
  std::vector<double> result;
  for (std::int64_t i = 0; i < out.view.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < out.view.shape()[1]; ++j) {
      double sum = args.accumulate ? out.at(i, j) : 0.0;
      if (!args.bias.empty()) sum += bias.at(0, j);
      for (std::int64_t l = 0; l < k; ++l) {
        sum += (args.a_transposed ? a.at(l, i) : a.at(i, l)) *
               (args.b_transposed ? b.at(j, l) : b.at(l, j));
      }
      result.push_back(sum);
    }
  }
  return result;
}

void run(MatmulArgs args, StreamView stream) {
  test::ProductSpace space;
  args.workspace = space.of(args);
  ops::matmul(args, stream);
  stream.synchronize();
}

/// What is stored, and whether it is added to what was there, which is kept in f32.
struct Storing {
  DType dtype;
  bool accumulate;
};

void check_combinations(Bf16Products products) {
  const auto [m, n, k] = GENERATE(Sizes{1, 1, 1}, Sizes{5, 7, 3}, Sizes{33, 65, 17},
                                  Sizes{64, 48, 96}, Sizes{65, 1024, 9});
  const bool a_transposed = GENERATE(false, true);
  const bool b_transposed = GENERATE(false, true);
  const bool with_bias = GENERATE(false, true);
  const DType operands = GENERATE(DType::f32, DType::bf16, DType::f16);
  const auto [result, accumulate] =
      GENERATE(Storing{DType::f32, false}, Storing{DType::f32, true}, Storing{DType::bf16, false},
               Storing{DType::f16, false});
  CAPTURE(m, n, k, a_transposed, b_transposed, with_bias, accumulate, operands, result, products);
  const Matrix a(stored(m, k, a_transposed), operands, 1);
  const Matrix b(stored(k, n, b_transposed), operands, 2);
  const Matrix out({m, n}, result, 3);
  const Matrix bias({1, n}, operands, 4);
  const MatmulArgs args{.a = a.view,
                        .b = b.view,
                        .out = out.view,
                        .bias = with_bias ? bias.view.reshaped({n}) : HostView(),
                        .a_transposed = a_transposed,
                        .b_transposed = b_transposed,
                        .accumulate = accumulate,
                        .workspace = {}};
  const std::vector<double> expected = product(args, a, b, out, bias);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::cpu::use_bf16_products(products, stream);
  run(args, stream);
  const auto tolerance =
      is_half(result) ? test::tolerance::rounded_half : test::tolerance::reduction;
  CHECK(test::difference(out.values(), expected, tolerance) == "");
}

TEST_CASE("Matmul: every combination of flags and dtypes", "[ops][matmul]") {
  check_combinations(Bf16Products::widened);
}

TEST_CASE("Matmul: native bf16 products in every combination", "[ops][matmul]") {
  if (!__builtin_cpu_supports("avx512bf16")) test::skip("needs a CPU with AVX512_BF16");
  check_combinations(Bf16Products::native);
}

TEST_CASE("Matmul: large products run in pieces", "[ops][matmul]") {
  const auto [m, n, k] = GENERATE(Sizes{700, 65, 3000}, Sizes{130, 3001, 257});
  const bool a_transposed = GENERATE(false, true);
  const DType operands = GENERATE(DType::f32, DType::bf16, DType::f16);
  CAPTURE(m, n, k, a_transposed, operands);
  const Matrix a(stored(m, k, a_transposed), operands, 1);
  const Matrix b({k, n}, operands, 2);
  const Matrix out({m, n}, a_transposed ? DType::f32 : operands, 3);
  const MatmulArgs args{.a = a.view,
                        .b = b.view,
                        .out = out.view,
                        .bias = {},
                        .a_transposed = a_transposed,
                        .accumulate = a_transposed,
                        .workspace = {}};
  const std::vector<double> expected = product(args, a, b, out, out);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  run(args, stream);
  const auto tolerance =
      is_half(out.view.dtype()) ? test::tolerance::rounded_half : test::tolerance::long_reduction;
  CHECK(test::difference(out.values(), expected, tolerance) == "");
}

TEST_CASE("Matmul: a mix of dtypes rounds only what it must", "[ops][matmul]") {
  const Matrix a({40, 30}, DType::f32, 1);
  const Matrix b({30, 70}, DType::bf16, 2);
  const Matrix out({40, 70}, DType::f32, 3);
  const MatmulArgs args{.a = a.view, .b = b.view, .out = out.view, .bias = {}, .workspace = {}};
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::cpu::use_bf16_products(Bf16Products::widened, stream);
  run(args, stream);
  CHECK(test::difference(out.values(), product(args, a, b, out, out), test::tolerance::reduction) ==
        "");
}

TEST_CASE("Matmul: a prepared product serves other addresses and streams with the same bits",
          "[ops][matmul]") {
  const Sizes sizes = GENERATE(Sizes{20, 10, 30}, Sizes{129, 3001, 257});
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const auto [m, n, k] = sizes;
  const Matrix a({k, m}, dtype, 1);
  const Matrix b({n, k}, dtype, 2);
  const Matrix first({m, n}, dtype, 3);
  const Matrix second({m, n}, dtype, 4);
  MatmulArgs args{.a = a.view,
                  .b = b.view,
                  .out = first.view,
                  .bias = {},
                  .a_transposed = true,
                  .b_transposed = true,
                  .workspace = {}};
  CpuStream here(CpuStream::Mode::inline_on_caller);
  CpuStream worker(CpuStream::Mode::worker_thread);
  run(args, here);
  args.out = second.view;
  run(args, worker);
  CHECK(first.values() == second.values());
}

TEST_CASE("Matmul: however many shapes there are only the last ones stay prepared",
          "[ops][matmul]") {
  constexpr auto shapes = static_cast<std::int64_t>(ops::cpu::prepared_products_max) + 20;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  std::size_t most = 0;
  std::vector<std::vector<double>> results;
  for (const int round : {1, 2}) {
    CAPTURE(round);
    for (std::int64_t m = 1; m <= shapes; ++m) {
      const Matrix a({m, 3}, DType::f32, 1);
      const Matrix b({3, 5}, DType::f32, 2);
      const Matrix out({m, 5}, DType::f32, 3);
      run({.a = a.view, .b = b.view, .out = out.view, .bias = {}, .workspace = {}}, stream);
      most = std::max(most, ops::cpu::prepared_products(stream));
      results.push_back(out.values());
    }
  }
  CHECK(most <= ops::cpu::prepared_products_max);
  CHECK(std::equal(results.begin(), results.begin() + shapes, results.begin() + shapes));
}

TEST_CASE("Matmul: views that do not fit are refused", "[ops][matmul]") {
  const Matrix a({4, 3}, DType::f32, 1);
  const Matrix b({4, 5}, DType::f32, 2);
  const Matrix c({3, 5}, DType::f32, 2);
  const Matrix out({4, 5}, DType::f32, 3);
  const Matrix narrow({4, 5}, DType::bf16, 3);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  MatmulArgs args{.a = a.view, .b = b.view, .out = out.view, .bias = {}, .workspace = {}};
  CHECK_THROWS_WITH(ops::matmul(args, stream),
                    Catch::Matchers::ContainsSubstring("a (4, 3) b (4, 5)"));
  args.b = c.view;
  args.out = {};
  CHECK_THROWS_AS(ops::matmul(args, stream), Error);
  args.out = narrow.view;
  args.accumulate = true;
  CHECK_THROWS_WITH(ops::matmul(args, stream), Catch::Matchers::ContainsSubstring("kept in f32"));
}

}  // namespace
}  // namespace dstrain
