#include "runtime/ops/tile_product.h"

#include <catch2/catch.hpp>

#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

constexpr std::int64_t stride = 70;

double at(const std::vector<float>& values, std::int64_t index) {
  return static_cast<double>(values[static_cast<std::size_t>(index)]);
}

TEST_CASE("Tile product: agrees with three loops for all remainders", "[ops][tile_product]") {
  const std::int64_t m = GENERATE(1, 3, 4, 8, 14);
  const std::int64_t n = GENERATE(1, 7, 8, 16, 31, 48, 59, 64);
  const std::int64_t k = GENERATE(1, 5, 64);
  const bool transposed = GENERATE(false, true);
  const std::string kind = GENERATE("store", "add", "scale and add");
  CAPTURE(m, n, k, transposed, kind);
  const std::vector<float> a = test::random_values(stride * stride, 1);
  const std::vector<float> b = test::random_values(stride * stride, 2);
  std::vector<float> c = test::random_values(stride * stride, 3);
  const std::vector<float> factors = test::random_values(n, 4);
  const ops::TileProduct tile{.c = c.data(),
                              .c_row = stride,
                              .a = a.data(),
                              .a_row = transposed ? 1 : stride,
                              .a_column = transposed ? stride : 1,
                              .b = b.data(),
                              .b_row = stride,
                              .m = m,
                              .n = n,
                              .k = k,
                              .factors = factors.data()};
  std::vector<double> expected = test::to_double(c);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double& sum = expected[static_cast<std::size_t>(i * stride + j)];
      if (kind == "store") sum = 0;
      if (kind == "scale and add") sum *= at(factors, j);
      for (std::int64_t l = 0; l < k; ++l) {
        sum += at(a, i * tile.a_row + l * tile.a_column) * at(b, l * stride + j);
      }
    }
  }
  if (kind == "store") ops::multiply_tile(tile);
  if (kind == "add") ops::add_tile_product(tile);
  if (kind == "scale and add") ops::scale_add_tile_product(tile);
  CHECK(test::difference(c, expected, test::tolerance::reduction) == "");
}

}  // namespace
}  // namespace dstrain
