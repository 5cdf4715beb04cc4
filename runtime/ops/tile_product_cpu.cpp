#include <cstddef>

#include "runtime/ops/simd.h"
#include "runtime/ops/tile_bf16.h"

namespace dstrain::ops {
namespace {

/// A vector of `width` floats, and one in memory that need not be aligned.
template <int width>
struct VectorOf {
  typedef float Type __attribute__((vector_size(width * sizeof(float))));
  typedef float Memory __attribute__((vector_size(width * sizeof(float)), aligned(4), may_alias));
};

/// A panel of `rows` x `vectors` vectors of c, held in registers while k runs.
template <Into into, int width, int rows, int vectors>
[[gnu::always_inline]] inline void panel(const TileProduct& t,
                                         std::int64_t row,
                                         std::int64_t column) {
  using Vector = typename VectorOf<width>::Type;
  using Memory = typename VectorOf<width>::Memory;
  Vector sum[static_cast<std::size_t>(rows)][static_cast<std::size_t>(vectors)] = {};
  constexpr std::int64_t step = width;
  const float* const a = t.a + row * t.a_row;
  const float* const b = t.b + column;
  for (std::int64_t k = 0; k < t.k; ++k) {
    Vector b_row[static_cast<std::size_t>(vectors)];
    for (int j = 0; j < vectors; ++j) {
      b_row[j] = *reinterpret_cast<const Memory*>(b + k * t.b_row + j * step);
    }
    for (int i = 0; i < rows; ++i) {
      const float factor = a[i * t.a_row + k * t.a_column];
      for (int j = 0; j < vectors; ++j) sum[i][j] += factor * b_row[j];
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < vectors; ++j) {
      Memory& c = *reinterpret_cast<Memory*>(t.c + (row + i) * t.c_row + column + j * step);
      if constexpr (into == Into::store) {
        c = sum[i][j];
      } else if constexpr (into == Into::add) {
        c += sum[i][j];
      } else {
        c = c * *reinterpret_cast<const Memory*>(t.factors + column + j * step) + sum[i][j];
      }
    }
  }
}

/// The columns from `column` on that do not fill a vector.
template <Into into>
[[gnu::always_inline]] inline void tail(const TileProduct& t,
                                        std::int64_t row,
                                        std::int64_t column) {
  for (; column < t.n; ++column) {
    float sum = 0;
    for (std::int64_t k = 0; k < t.k; ++k) {
      sum += t.a[row * t.a_row + k * t.a_column] * t.b[k * t.b_row + column];
    }
    float& c = t.c[row * t.c_row + column];
    if constexpr (into == Into::store) c = sum;
    if constexpr (into == Into::add) c += sum;
    if constexpr (into == Into::scale_add) c = c * t.factors[column] + sum;
  }
}

/// Columns [column, ...) in whole panels of `vectors` vectors, with as many rows at once as keep
/// the arithmetic units busy within the registers.
template <Into into, int width, int rows, int vectors>
[[gnu::always_inline]] inline void panels(const TileProduct& t, std::int64_t& column) {
  constexpr std::int64_t step = std::int64_t{width} * vectors;
  for (; column + step <= t.n; column += step) {
    std::int64_t row = 0;
    for (; row + rows <= t.m; row += rows) panel<into, width, rows, vectors>(t, row, column);
    for (; row < t.m; ++row) panel<into, width, 1, vectors>(t, row, column);
  }
}

/// `registers` vectors hold sums.
template <Into into, int width, int registers>
[[gnu::always_inline]] inline void product(const TileProduct& tile) {
  const TileProduct t = tile;
  std::int64_t column = 0;
  if constexpr (registers == 16) {
    panels<into, width, 4, 4>(t, column);
    panels<into, width, 4, 3>(t, column);
  }
  panels<into, width, registers / 2, 2>(t, column);
  panels<into, width, 8, 1>(t, column);
  for (std::int64_t row = 0; row < t.m && column < t.n; ++row) tail<into>(t, row, column);
}

// The loader picks the last that the machine can run; see simd.h on the sanitizers.
#define DSTRAIN_TILE_KERNEL(target_name, width, registers)                           \
  __attribute__((target(target_name))) void store_kernel(const TileProduct& t) {     \
    product<Into::store, width, registers>(t);                                       \
  }                                                                                  \
  __attribute__((target(target_name))) void add_kernel(const TileProduct& t) {       \
    product<Into::add, width, registers>(t);                                         \
  }                                                                                  \
  __attribute__((target(target_name))) void scale_add_kernel(const TileProduct& t) { \
    product<Into::scale_add, width, registers>(t);                                   \
  }

DSTRAIN_TILE_KERNEL("default", 4, 8)
#if DSTRAIN_SIMD_DISPATCH
DSTRAIN_TILE_KERNEL("arch=x86-64-v3", 8, 8)
DSTRAIN_TILE_KERNEL("arch=x86-64-v4", 16, 16)
#endif

bool may_round(const TileProduct& t) {
  return t.rounds && t.m % tile_edge == 0 && t.n % tile_edge == 0 && t.k % tile_edge == 0 &&
         rounds_products();
}

}  // namespace

void multiply_tile(const TileProduct& tile, Into into) {
  if (may_round(tile)) return multiply_rounded(tile, into);
  switch (into) {
    case Into::store:
      return store_kernel(tile);
    case Into::add:
      return add_kernel(tile);
    case Into::scale_add:
      return scale_add_kernel(tile);
  }
}

}  // namespace dstrain::ops
