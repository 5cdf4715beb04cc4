#include "runtime/ops/tile_product.h"

#include <catch2/catch.hpp>

#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

TEST_CASE("Tile product: agrees with three loops for all remainders", "[ops][tile_product]") {
  const std::int64_t m = GENERATE(1, 3, 4, 6);
  const std::int64_t n = GENERATE(1, 7, 8, 16, 31, 59, 64);
  const std::int64_t k = GENERATE(1, 5, 64);
  const bool transposed = GENERATE(false, true);
  constexpr std::int64_t stride = 70;
  const std::vector<float> a = test::random_values(stride * stride, 1);
  const std::vector<float> b = test::random_values(stride * stride, 2);
  std::vector<float> c = test::random_values(stride * stride, 3);
  std::vector<double> expected = test::to_double(c);
  const std::int64_t a_row = transposed ? 1 : stride;
  const std::int64_t a_column = transposed ? stride : 1;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l) {
        expected[static_cast<std::size_t>(i * stride + j)] +=
            static_cast<double>(a[static_cast<std::size_t>(i * a_row + l * a_column)]) *
            static_cast<double>(b[static_cast<std::size_t>(l * stride + j)]);
      }
    }
  }
  ops::add_tile_product({.c = c.data(),
                         .c_row = stride,
                         .a = a.data(),
                         .a_row = a_row,
                         .a_column = a_column,
                         .b = b.data(),
                         .b_row = stride,
                         .m = m,
                         .n = n,
                         .k = k});
  CHECK(test::difference(c, expected, test::tolerance::reduction) == "");
}

}  // namespace
}  // namespace dstrain
