#pragma once
#include "runtime/ops/attention_scratch.h"
#include "runtime/ops/cuda/attention_rows.h"
#include "runtime/ops/cuda/attention_rules.h"
#include "runtime/ops/cuda/dropout_mask.h"

namespace dstrain::ops::gpu {

// With P the probabilities, Z the dropout multipliers, dP the gradient of P Z:
// dS = P (dP Z - delta), delta = sum_j P_j (dP Z)_j = dO . O per query. One kernel sums the
// gradients of a key tile over queries, another those of a query tile over keys, so that no two
// blocks add to the same element. Both compute the tiles of P and dS, unless the first kernel has
// room to store dS for the second.

/// Arguments of the backward kernels.
template <class T>
struct AttentionBackward {
  AttentionSizes sizes;
  Rotary rotary;
  float query_factor;           ///< scales scores: log2(e) / divisor
  float query_gradient_factor;  ///< scales gradients of queries and keys: 1 / divisor
  Sight sight;
  DistanceBias bias;
  const T* bias_table;
  DropoutMask mask;
  HeadMatrix<const T> query;
  HeadMatrix<const T> key;
  HeadMatrix<const T> value;
  HeadMatrix<const T> output;
  HeadMatrix<const T> output_gradient;
  HeadMatrix<T> query_gradient;
  HeadMatrix<T> key_gradient;
  HeadMatrix<T> value_gradient;
  const float* logsumexp;
  float* delta;      ///< (B, H, T)
  float* bias_sums;  ///< (B, H, query tiles, buckets); null: not computed
};

/// Whether any of `count` queries may see any of the `keys` keys that begin with the tile.
template <class T>
DSTRAIN_DEVICE bool sees(const AttentionBackward<T>& args,
                         const AttentionPlace& at,
                         int count,
                         int keys = key_tile) {
  return args.sight.of_tile(at.sequence, at.query, count).meets(at.key(), keys);
}

/// Sums of a tile's score gradients along its diagonals, and the row of the bias table that each
/// diagonal belongs to.
template <int queries>
struct DiagonalSums {
  static constexpr int count = queries + key_tile - 1;
  float sum[count];
  std::int32_t row[count];
};

/// Sums each diagonal of a tile in a fixed order.
template <int threads, int queries>
DSTRAIN_DEVICE void add_diagonals(const DistanceBias& bias,
                                  const AttentionPlace& at,
                                  const float (&gradients)[queries][key_tile + padding],
                                  DiagonalSums<queries>& sums) {
  constexpr int count = DiagonalSums<queries>::count;
  static_assert(count <= threads);
  if (thread() >= count) return;
  const int ahead = thread() - (queries - 1);  // column - row
  float sum = 0;
#pragma unroll 1
  for (int row = 0; row < queries; ++row) {
    const int column = row + ahead;
    if (column >= 0 && column < key_tile) sum += gradients[row][column];
  }
  sums.sum[thread()] = sum;
  sums.row[thread()] = static_cast<std::int32_t>(bias.row_of(at.key() - at.query + ahead));
}

/// Returns the sum for one row of the bias table, added in a fixed order.
template <int queries>
DSTRAIN_DEVICE float sum_of_bias(const DiagonalSums<queries>& sums, int row) {
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < DiagonalSums<queries>::count; ++i) {
    if (sums.row[i] == row) sum += sums.sum[i];
  }
  return sum;
}

/// The backward pass of 16-bit dtypes on tensor cores, except `delta` and the sum over `bias_sums`.
/// With a rotary embedding, queries and keys are first rotated into scratch memory.
template <class T>
void launch_half_backward(const AttentionBackward<T>& backward,
                          const AttentionScratch& scratch,
                          StreamView stream);

}  // namespace dstrain::ops::gpu
