#include "runtime/ops/tile_product.h"

#include "runtime/tensor/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/skip.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

constexpr std::int64_t stride = 84;

double at(const std::vector<float>& values, std::int64_t index) {
  return static_cast<double>(values[static_cast<std::size_t>(index)]);
}

struct TileSizes {
  std::int64_t m, n, k;
};

/// The product of random operands by the kernel and by three loops over what it is to multiply.
void check_product(TileSizes sizes, bool transposed, ops::Into into, bool rounds) {
  const auto [m, n, k] = sizes;
  CAPTURE(m, n, k, transposed, static_cast<int>(into), rounds);
  std::vector<float> a = test::random_values(stride * stride, 1);
  std::vector<float> b = test::random_values(stride * stride, 2);
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
                              .factors = factors.data(),
                              .rounds = rounds};
  std::vector<double> expected = test::to_double(c);
  ops::multiply_tile(tile, into);
  if (rounds && ops::rounds_products()) {
    for (std::vector<float>* operand : {&a, &b}) {
      for (float& value : *operand) value = to_float(to_bfloat16(value));
    }
  }
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double& sum = expected[static_cast<std::size_t>(i * stride + j)];
      if (into == ops::Into::store) sum = 0;
      if (into == ops::Into::scale_add) sum *= at(factors, j);
      for (std::int64_t l = 0; l < k; ++l) {
        sum += at(a, i * tile.a_row + l * tile.a_column) * at(b, l * stride + j);
      }
    }
  }
  CHECK(test::difference(c, expected, test::tolerance::reduction) == "");
}

TEST_CASE("Tile product: agrees with three loops for all remainders", "[ops][tile_product]") {
  const std::int64_t m = GENERATE(1, 3, 4, 8, 14);
  const std::int64_t n = GENERATE(1, 7, 8, 16, 31, 48, 59, 64);
  const std::int64_t k = GENERATE(1, 5, 64);
  const bool transposed = GENERATE(false, true);
  const ops::Into into = GENERATE(ops::Into::store, ops::Into::add, ops::Into::scale_add);
  check_product({m, n, k}, transposed, into, false);
}

TEST_CASE("Tile product: may round to bf16 where that is faster", "[ops][tile_product]") {
  const std::int64_t m = GENERATE(16, 48, 64, 80);
  const std::int64_t n = GENERATE(16, 32, 64, 80);
  const std::int64_t k = GENERATE(16, 32, 48, 64, 80);
  const bool transposed = GENERATE(false, true);
  const ops::Into into = GENERATE(ops::Into::store, ops::Into::add, ops::Into::scale_add);
  check_product({m, n, k}, transposed, into, true);
}

TEST_CASE("Tile product: operands that were packed before give the same", "[ops][tile_product]") {
  if (!ops::rounds_products()) {
    test::skip("needs a CPU that multiplies bf16 faster than f32: AMX, or AMD's AVX512_BF16");
  }
  const std::int64_t columns = GENERATE(16, 48, 64);
  const std::int64_t row = GENERATE(0, 16, 48);
  const std::int64_t from = GENERATE(0, 32);
  const bool transposed = GENERATE(false, true);
  CAPTURE(columns, row, from, transposed);
  const std::vector<float> a = test::random_values(stride * stride, 1);
  const std::vector<float> b = test::random_values(stride * stride, 2);
  std::vector<std::uint32_t> left(ops::packed_words);
  std::vector<std::uint32_t> right(ops::packed_words);
  const std::int64_t a_row = transposed ? 1 : stride;
  const std::int64_t a_column = transposed ? stride : 1;
  ops::pack_left({a.data(), a_row, a_column, 64, 64 - from}, left.data());
  ops::pack_right({b.data(), stride, 1, 64, columns}, right.data());
  std::vector<float> expected(static_cast<std::size_t>(stride * stride));
  std::vector<float> packed = expected;
  ops::TileProduct tile{.c = expected.data(),
                        .c_row = stride,
                        .a = a.data() + row * a_row,
                        .a_row = a_row,
                        .a_column = a_column,
                        .b = b.data() + from * stride,
                        .b_row = stride,
                        .m = 16,
                        .n = columns,
                        .k = 64 - from,
                        .rounds = true};
  ops::multiply_tile(tile);
  tile.c = packed.data();
  tile.a = nullptr;
  tile.b = nullptr;
  tile.a_packed = left.data() + row * ops::packed_edge / 2;
  tile.b_packed = right.data() + from / 2 * ops::packed_edge;
  ops::multiply_tile(tile);
  CHECK(packed == expected);
}

}  // namespace
}  // namespace dstrain
