// Products of few rows, as decoding has them. The thread sanitizer's build has another kernel, to
// which the same holds.
#include "runtime/ops/few_rows.h"

#include <cmath>
#include <limits>

#include "runtime/device/cpu_stream.h"
#include "runtime/numeric/philox.h"
#include "runtime/ops/matmul_cpu.h"
#include "tests/ops/product_space.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/skip.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace dstrain {
namespace {

using ops::cpu::Bf16Products;

struct Dtypes {
  DType operands;
  DType out;
  Bf16Products products;
};

/// A product of few_rows_max rows, whose parts are computed too.
struct Case {
  Case(std::int64_t outputs, std::int64_t inputs, bool transposed, const Dtypes& of)
      : n(outputs),
        k(inputs),
        b_transposed(transposed),
        dtypes(of),
        a(test::random_values(ops::few_rows_max * k, 1), of.operands),
        b(test::random_values(k * n, 2), of.operands),
        bias(test::random_values(n, 3), of.operands) {}

  /// Returns rows [first, first + count) of the product.
  std::vector<float> rows(std::int64_t first, std::int64_t count, [[maybe_unused]] int threads) {
    test::TypedValues out(std::vector<float>(static_cast<std::size_t>(count * n)), dtypes.out);
    ops::MatmulArgs args{.a = a.view({ops::few_rows_max, k}).rows(first, count),
                         .b = b.view(b_transposed ? Shape{n, k} : Shape{k, n}),
                         .out = out.view({count, n}),
                         .bias = bias.view({n}),
                         .b_transposed = b_transposed,
                         .workspace = {}};
    test::ProductSpace space;
    args.workspace = space.of(args);
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    ops::cpu::use_bf16_products(dtypes.products, stream);
#ifdef _OPENMP
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
#endif
    ops::matmul(args, stream);
#ifdef _OPENMP
    omp_set_num_threads(before);
#endif
    return out.read();
  }

  [[nodiscard]] std::vector<double> expected() const {
    const std::vector<double> left = a.read_double();
    const std::vector<double> right = b.read_double();
    const std::vector<double> start = bias.read_double();
    std::vector<double> result;
    for (std::int64_t i = 0; i < ops::few_rows_max; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = start[static_cast<std::size_t>(j)];
        for (std::int64_t l = 0; l < k; ++l) {
          sum += left[static_cast<std::size_t>(i * k + l)] *
                 right[static_cast<std::size_t>(b_transposed ? j * k + l : l * n + j)];
        }
        result.push_back(sum);
      }
    }
    return result;
  }

  std::int64_t n;
  std::int64_t k;
  bool b_transposed;
  Dtypes dtypes;
  test::TypedValues a;
  test::TypedValues b;
  test::TypedValues bias;
};

Dtypes widened_dtypes() {
  return GENERATE(Dtypes{DType::f32, DType::f32, Bf16Products::widened},
                  Dtypes{DType::bf16, DType::bf16, Bf16Products::widened},
                  Dtypes{DType::bf16, DType::f32, Bf16Products::widened},
                  Dtypes{DType::f16, DType::f16, Bf16Products::widened});
}

Dtypes native_dtypes() {
  if (ops::cpu::preferred_bf16_products() != Bf16Products::native) {
    test::skip("needs a CPU with fast bf16 products");
  }
  return {DType::bf16, GENERATE(DType::bf16, DType::f32), Bf16Products::native};
}

void check_sums(const Dtypes& dtypes) {
  const bool transposed = GENERATE(false, true);
  const std::int64_t n = GENERATE(1, 16, 33, 100, 530);
  const std::int64_t k = GENERATE(1, 2, 16, 31, 129, 500);
  CAPTURE(dtypes.operands, dtypes.out, dtypes.products, transposed, n, k);
  Case product(n, k, transposed, dtypes);
  const auto tolerance =
      is_half(dtypes.out) ? test::tolerance::rounded_half : test::tolerance::long_reduction;
  CHECK(test::difference(product.rows(0, ops::few_rows_max, 2), product.expected(), tolerance) ==
        "");
}

/// Compares parts of a product with the whole.
void check_rows(const Dtypes& dtypes) {
  const bool transposed = GENERATE(false, true);
  const auto seed = GENERATE(range<std::uint64_t>(0, 12));
  const auto below = [&](std::uint64_t index, std::int64_t bound) {
    return static_cast<std::int64_t>(
        uniform_below({.seed = seed, .index = index}, static_cast<std::uint64_t>(bound)));
  };
  const std::int64_t n = seed == 0 ? 1 : 1 + below(0, 700);
  const std::int64_t k = seed == 1 ? 1 : 1 + below(1, seed % 3 == 0 ? 5000 : 300);
  CAPTURE(dtypes.operands, dtypes.out, dtypes.products, transposed, seed, n, k);
  Case product(n, k, transposed, dtypes);
  const std::vector<float> whole = product.rows(0, ops::few_rows_max, 1);
  for (int count = 1; count <= ops::few_rows_max; ++count) {
    const std::int64_t first =
        below(static_cast<std::uint64_t>(count + 2), ops::few_rows_max - count + 1);
    const int threads = 1 + count % 4;
    CAPTURE(count, first, threads);
    const std::vector<float> rows = product.rows(first, count, threads);
    CHECK(std::equal(rows.begin(), rows.end(), whole.begin() + first * n));
  }
}

TEST_CASE("FewRows: every size agrees with sums in double", "[ops][few_rows]") {
  check_sums(widened_dtypes());
}

TEST_CASE("FewRows: native bf16 products of every size agree with sums in double",
          "[ops][few_rows]") {
  check_sums(native_dtypes());
}

TEST_CASE("FewRows: a row has the same bits beside any rows and with any number of threads",
          "[ops][few_rows]") {
  check_rows(widened_dtypes());
}

TEST_CASE("FewRows: rows of native bf16 products have the same bits beside any rows",
          "[ops][few_rows]") {
  check_rows(native_dtypes());
}

TEST_CASE("FewRows: an infinite weight does not reach other columns", "[ops][few_rows]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool transposed = GENERATE(false, true);
  constexpr std::int64_t n = 45;
  constexpr std::int64_t k = 7;
  CAPTURE(dtype, transposed);
  Case product(n, k, transposed, {dtype, dtype, ops::cpu::preferred_bf16_products()});
  std::vector<float> weights(n * k, 1.0F);
  weights[transposed ? 20 * k + k - 1 : (k - 1) * n + 20] = std::numeric_limits<float>::infinity();
  product.b.assign(weights);
  const std::vector<float> out = product.rows(0, 1, 1);
  for (std::int64_t j = 0; j < n; ++j) {
    CAPTURE(j);
    CHECK(std::isinf(out[static_cast<std::size_t>(j)]) == (j == 20));
  }
}

}  // namespace
}  // namespace dstrain
