#include <cstddef>

#include "runtime/ops/simd.h"
#include "runtime/ops/tile_product.h"

namespace dstrain::ops {
namespace {

constexpr std::int64_t rows_at_once = 4;

/// A panel of `rows` x `columns` of c, held in registers while k runs.
template <int rows, int columns>
inline void add_panel(const TileProduct& t, std::int64_t row, std::int64_t column) {
  float sum[static_cast<std::size_t>(rows)][static_cast<std::size_t>(columns)] = {};
  const float* const a = t.a + row * t.a_row;
  const float* const b = t.b + column;
  for (std::int64_t k = 0; k < t.k; ++k) {
    for (int i = 0; i < rows; ++i) {
      const float factor = a[i * t.a_row + k * t.a_column];
      for (int j = 0; j < columns; ++j) sum[i][j] += factor * b[k * t.b_row + j];
    }
  }
  for (int i = 0; i < rows; ++i) {
    float* const c = t.c + (row + i) * t.c_row + column;
    for (int j = 0; j < columns; ++j) c[j] += sum[i][j];
  }
}

template <int rows>
inline void add_rows(const TileProduct& t, std::int64_t row) {
  std::int64_t column = 0;
  for (; column + 32 <= t.n; column += 32) add_panel<rows, 32>(t, row, column);
  if (column + 16 <= t.n) {
    add_panel<rows, 16>(t, row, column);
    column += 16;
  }
  if (column + 8 <= t.n) {
    add_panel<rows, 8>(t, row, column);
    column += 8;
  }
  for (; column < t.n; ++column) add_panel<rows, 1>(t, row, column);
}

DSTRAIN_SIMD_CLONES
void tile_kernel(const TileProduct& tile) {
  const TileProduct t = tile;
  std::int64_t row = 0;
  for (; row + rows_at_once <= t.m; row += rows_at_once) add_rows<rows_at_once>(t, row);
  for (; row < t.m; ++row) add_rows<1>(t, row);
}

}  // namespace

void add_tile_product(const TileProduct& tile) {
  tile_kernel(tile);
}

}  // namespace dstrain::ops
