#pragma once
#include <cstdint>

#include "runtime/ops/cuda/warp_instructions.h"

namespace dstrain::ops::gpu {

// Products of tiles of 16-bit elements by tensor cores. A warp multiplies A (16 x 16) by B (16 x 8)
// and adds the product to C (16 x 8), of which each lane has a fragment. With g = lane / 4 and
// t = lane % 4 these are, two elements in a register, the first in the lower bits:
//
//   A  rows g and g + 8, each at columns 2 t, 2 t + 1; then both at 2 t + 8, 2 t + 9
//   B  column g at rows 2 t, 2 t + 1; then 2 t + 8, 2 t + 9
//   C  row g at columns 2 t, 2 t + 1; then row g + 8: four floats
//
// Two fragments of C, side by side, have the elements that one of A has: what a product gave is
// rounded where it lies and multiplied on.

struct FragmentA {
  std::uint32_t pairs[4];
};
struct FragmentB {
  std::uint32_t pairs[2];
};
struct FragmentC {
  float sums[4];
};

DSTRAIN_DEVICE int lane() {
  return thread() % warp_threads;
}
DSTRAIN_DEVICE int warp() {
  return thread() / warp_threads;
}
/// The first of the two rows, eight apart, of which a lane has elements of C.
DSTRAIN_DEVICE int fragment_row() {
  return lane() / 4;
}
/// The first of the two columns.
DSTRAIN_DEVICE int fragment_column() {
  return lane() % 4 * 2;
}

/// Rows of 16-bit elements in shared memory. The eight that are between two rows let the eight rows
/// of a matrix that is loaded lie in all 32 banks.
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

/// B of 16 columns, as products take it.
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

/// The 16 columns of C that two fragments have, rounded to T, as A.
template <class T>
DSTRAIN_DEVICE FragmentA round_to_a(const FragmentC& first, const FragmentC& second) {
  return {{pack<T>(first.sums[0], first.sums[1]), pack<T>(first.sums[2], first.sums[3]),
           pack<T>(second.sums[0], second.sums[1]), pack<T>(second.sums[2], second.sums[3])}};
}

/// c += rows [row, row + 16) of `a` times the transpose of `b`: 8 columns of c in each fragment.
template <class T, int a_rows, int rows, int columns, int count>
DSTRAIN_DEVICE void add_product_transposed(const HalfTile<T, a_rows, columns>& a,
                                           int row,
                                           const HalfTile<T, rows, columns>& b,
                                           FragmentC (&c)[count]) {
  static_assert(count * 8 == rows);
#pragma unroll 8
  for (int k = 0; k < columns; k += 16) {
    const FragmentA of_a = load_a(a, row, k);
#pragma unroll
    for (int n = 0; n < count; n += 2) {
      const TwoFragmentsB of_b = load_b_transposed(b, n * 8, k);
      multiply_add<T>(c[n], of_a, of_b.first);
      multiply_add<T>(c[n + 1], of_a, of_b.second);
    }
  }
}

/// c += `a`, of which each two fragments are 16 columns and are rounded to T, times `b`.
template <class T, int rows, int columns, int a_count, int count>
DSTRAIN_DEVICE void add_rounded_product(const FragmentC (&a)[a_count],
                                        const HalfTile<T, rows, columns>& b,
                                        FragmentC (&c)[count]) {
  static_assert(a_count * 8 == rows && count * 8 == columns);
#pragma unroll
  for (int k = 0; k < a_count; k += 2) {
    const FragmentA of_a = round_to_a<T>(a[k], a[k + 1]);
#pragma unroll
    for (int n = 0; n < count; n += 2) {
      const TwoFragmentsB of_b = load_b(b, k * 8, n * 8);
      multiply_add<T>(c[n], of_a, of_b.first);
      multiply_add<T>(c[n + 1], of_a, of_b.second);
    }
  }
}

}  // namespace dstrain::ops::gpu
