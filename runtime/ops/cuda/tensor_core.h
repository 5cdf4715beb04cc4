#pragma once
#include <cstdint>

#include "runtime/ops/cuda/warp_instructions.h"

namespace dstrain::ops::gpu {

// Products of tiles of 16-bit elements on tensor cores. A warp multiplies A (16 x 16) by B (16 x 8)
// and adds the product to C (16 x 8). Each lane holds a fragment of each. With g = lane / 4 and
// t = lane % 4 the fragments are, with two 16-bit elements per register, the first in the low bits:
//
//   A  rows g and g + 8, each at columns 2 t, 2 t + 1; then both at 2 t + 8, 2 t + 9
//   B  column g at rows 2 t, 2 t + 1; then 2 t + 8, 2 t + 9
//   C  row g at columns 2 t, 2 t + 1; then row g + 8: four floats
//
// Two adjacent fragments of C hold the elements of one fragment of A, so a product can be rounded
// in its registers and used as the next operand.

struct FragmentA {
  std::uint32_t pairs[4];
};
struct FragmentB {
  std::uint32_t pairs[2];
};
struct FragmentC {
  float sums[4];
};

// Unsigned division and remainder compile to shifts and masks.
DSTRAIN_DEVICE int lane() {
  return static_cast<int>(static_cast<unsigned>(thread()) % warp_threads);
}
DSTRAIN_DEVICE int warp() {
  return static_cast<int>(static_cast<unsigned>(thread()) / warp_threads);
}
/// The first of the lane's two rows of C, which are eight apart.
DSTRAIN_DEVICE int fragment_row() {
  return lane() / 4;
}
/// The first of the lane's two columns of C.
DSTRAIN_DEVICE int fragment_column() {
  return lane() % 4 * 2;
}

/// Rows of 16-bit elements in shared memory. Padding of eight elements spreads the eight rows of a
/// loaded matrix over all 32 banks.
template <class T, int rows, int columns>
struct alignas(16) HalfTile {
  T element[rows][columns + 8];
};

/// Rows [row, row + 16) and columns [column, column + 16) of the tile, as A.
template <class T, int rows, int columns>
DSTRAIN_DEVICE FragmentA load_a(const HalfTile<T, rows, columns>& tile, int row, int column) {
  FragmentA a;
  load_matrices(&tile.element[row + lane() % 16][column + lane() / 16 * 8], a.pairs);
  return a;
}

/// A = the transpose of rows [row, row + 16) and columns [column, column + 16) of the tile.
template <class T, int rows, int columns>
DSTRAIN_DEVICE FragmentA load_a_transposed(const HalfTile<T, rows, columns>& tile,
                                           int row,
                                           int column) {
  FragmentA a;
  load_transposed_matrices(
      &tile.element[row + lane() / 16 * 8 + lane() % 8][column + lane() / 8 % 2 * 8], a.pairs);
  return a;
}

/// B with 16 columns.
struct TwoFragmentsB {
  FragmentB first;
  FragmentB second;
};

/// B = the transpose of rows [row, row + 16) and columns [column, column + 16).
template <class T, int rows, int columns>
DSTRAIN_DEVICE TwoFragmentsB load_b_transposed(const HalfTile<T, rows, columns>& tile,
                                               int row,
                                               int column) {
  std::uint32_t pairs[4];
  load_matrices(&tile.element[row + lane() / 16 * 8 + lane() % 8][column + lane() / 8 % 2 * 8],
                pairs);
  return {{{pairs[0], pairs[1]}}, {{pairs[2], pairs[3]}}};
}

/// B = rows [row, row + 16) and columns [column, column + 16).
template <class T, int rows, int columns>
DSTRAIN_DEVICE TwoFragmentsB load_b(const HalfTile<T, rows, columns>& tile, int row, int column) {
  std::uint32_t pairs[4];
  load_transposed_matrices(&tile.element[row + lane() % 16][column + lane() / 16 * 8], pairs);
  return {{{pairs[0], pairs[1]}}, {{pairs[2], pairs[3]}}};
}

/// c += a b.
template <class T>
DSTRAIN_DEVICE void multiply_add(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  multiply_add_matrices<T>(a.pairs, b.pairs, c.sums);
}

/// Returns the 16 columns of two fragments of C, rounded to T, as A.
template <class T>
DSTRAIN_DEVICE FragmentA round_to_a(const FragmentC& first, const FragmentC& second) {
  return {{pack<T>(first.sums[0], first.sums[1]), pack<T>(first.sums[2], first.sums[3]),
           pack<T>(second.sums[0], second.sums[1]), pack<T>(second.sums[2], second.sums[3])}};
}

/// c += a * (rows [row, row + 16) of `b`). `a` has a fragment per 16 rows of c; c has 8 columns per
/// fragment. Each fragment of `b` is loaded once for all rows.
template <class T, int rows, int columns, int tiles, int count>
DSTRAIN_DEVICE void add_fragment_product(const FragmentA (&a)[tiles],
                                         const HalfTile<T, rows, columns>& b,
                                         int row,
                                         FragmentC (&c)[tiles][count]) {
  static_assert(count * 8 == columns);
#pragma unroll
  for (int n = 0; n < count; n += 2) {
    const TwoFragmentsB of_b = load_b(b, row, n * 8);
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      multiply_add<T>(c[tile][n], a[tile], of_b.first);
      multiply_add<T>(c[tile][n + 1], a[tile], of_b.second);
    }
  }
}

/// c += (rows of `a` from `row` on) * transpose of `b`.
template <class T, int a_rows, int rows, int columns, int tiles, int count>
DSTRAIN_DEVICE void add_product_transposed(const HalfTile<T, a_rows, columns>& a,
                                           int row,
                                           const HalfTile<T, rows, columns>& b,
                                           FragmentC (&c)[tiles][count]) {
  static_assert(count * 8 == rows);
#pragma unroll 8
  for (int k = 0; k < columns; k += 16) {
    FragmentA of_a[tiles];
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) of_a[tile] = load_a(a, row + tile * 16, k);
#pragma unroll
    for (int n = 0; n < count; n += 2) {
      const TwoFragmentsB of_b = load_b_transposed(b, n * 8, k);
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        multiply_add<T>(c[tile][n], of_a[tile], of_b.first);
        multiply_add<T>(c[tile][n + 1], of_a[tile], of_b.second);
      }
    }
  }
}

/// c += a * b, with `a` rounded to T; every two fragments of `a` are 16 columns.
template <class T, int rows, int columns, int tiles, int a_count, int count>
DSTRAIN_DEVICE void add_rounded_product(const FragmentC (&a)[tiles][a_count],
                                        const HalfTile<T, rows, columns>& b,
                                        FragmentC (&c)[tiles][count]) {
  static_assert(a_count * 8 == rows);
#pragma unroll
  for (int k = 0; k < a_count; k += 2) {
    FragmentA of_a[tiles];
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      of_a[tile] = round_to_a<T>(a[tile][k], a[tile][k + 1]);
    }
    add_fragment_product(of_a, b, k * 8, c);
  }
}

/// c += transpose of `a` * b, where `a` is the warp's own tile.
template <class T, int rows, int a_columns, int columns, int tiles, int count>
DSTRAIN_DEVICE void add_transposed_product(const HalfTile<T, rows, a_columns>& a,
                                           const HalfTile<T, rows, columns>& b,
                                           FragmentC (&c)[tiles][count]) {
  static_assert(a_columns == tiles * 16);
#pragma unroll
  for (int k = 0; k < rows; k += 16) {
    FragmentA of_a[tiles];
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) of_a[tile] = load_a_transposed(a, k, tile * 16);
    add_fragment_product(of_a, b, k, c);
  }
}

}  // namespace dstrain::ops::gpu
