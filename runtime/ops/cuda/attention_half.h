#pragma once
#include <cstdint>
#include <limits>

#include "runtime/ops/cuda/attention_rows.h"
#include "runtime/ops/cuda/attention_rules.h"
#include "runtime/ops/cuda/dropout_mask.h"
#include "runtime/ops/cuda/tensor_core.h"

namespace dstrain::ops::gpu {

// Attention of 16-bit tensors by tensor cores, organised as FlashAttention-2 is (Dao 2023): a warp
// has 16 rows of what its block computes, in registers, and what one product gives goes into the
// next from there. Four warps work on 64 rows.
//
// What is rounded to 16 bits: queries and keys after they were turned, probabilities before they
// multiply values or gradients, gradients of scores before they multiply queries or keys, and what
// is stored. All else is f32: scores, which are divided behind the product, sums, statistics.

/// The score of a key that a query does not see.
inline constexpr float nothing = -std::numeric_limits<float>::infinity();

inline constexpr int half_threads = 128;
inline constexpr int half_rows = 64;

/// Which of the 64 rows of its block is the first (0) or second (1) of which a thread has elements.
DSTRAIN_DEVICE int block_row(int which) {
  return warp() * 16 + fragment_row() + 8 * which;
}
/// Calls `body(which, column, value)` for all that it has of them, of its first or second row.
template <int count, class Fragment, class Body>
DSTRAIN_DEVICE void for_each_sum(Fragment (&fragments)[count], const Body& body) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      body(j / 2, i * 8 + fragment_column() + j % 2, fragments[i].sums[j]);
    }
  }
}
/// What the threads that have elements of a row make of their values.
DSTRAIN_DEVICE float largest_of_row(float value) {
  value = fmaxf(value, shuffle_xor(value, 1));
  return fmaxf(value, shuffle_xor(value, 2));
}
DSTRAIN_DEVICE float sum_of_row(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}

/// The thread's copies have come, and those of the others; all have done what they did before.
DSTRAIN_DEVICE void arrive() {
  wait_for_copies();
  sync();
}

/// Whether rows of a head can be copied 16 bytes at a time.
template <class T>
bool is_aligned(const HeadMatrix<T>& matrix, std::int64_t head_size) {
  constexpr std::int64_t chunk = 16 / sizeof(T);
  return reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride % chunk == 0 &&
         head_size % chunk == 0;
}

/// How many of a tile's rows there are.
template <int rows, class T>
DSTRAIN_DEVICE int rows_there(const TileRows<T>& from) {
  return from.count < rows ? static_cast<int>(from.count) : rows;
}

/// tile = rows, with zeros around them, once the threads have arrived.
template <int rows, int columns, class T>
DSTRAIN_DEVICE void start_tile(const TileRows<const T>& from,
                               bool aligned,
                               HalfTile<T, rows, columns>& tile) {
  if (aligned) {
    constexpr int chunks = columns / 8;
    constexpr int at_once = half_threads / chunks;
    const int first = thread() / chunks;
    const int column = thread() % chunks * 8;
    const int count = column < from.head_size ? rows_there<rows>(from) : 0;
    const T* source = from.first + first * from.stride + column;
#pragma unroll
    for (int i = 0; i < rows / at_once; ++i) {
      const int row = first + i * at_once;
      start_copy(&tile.element[row][column], source, row < count);
      source += at_once * from.stride;
    }
  } else {
#pragma unroll 1
    for (int i = thread(); i < rows * columns; i += half_threads) {
      const int row = i / columns;
      const int column = i % columns;
      const bool inside = row < from.count && column < from.head_size;
      tile.element[row][column] = inside ? from.first[row * from.stride + column] : T{};
    }
  }
}

/// Writes the rows of a tile.
template <int rows, int columns, class T>
DSTRAIN_DEVICE void store_halves(const HalfTile<T, rows, columns>& tile,
                                 const TileRows<T>& to,
                                 bool aligned) {
  if (aligned) {
    constexpr int chunks = columns / 8;
    const int column = thread() % chunks * 8;
#pragma unroll 4
    for (int row = thread() / chunks; row < rows; row += half_threads / chunks) {
      if (row >= to.count || column >= to.head_size) continue;
      copy_chunk(to.first + row * to.stride + column, &tile.element[row][column]);
    }
  } else {
#pragma unroll 1
    for (int i = thread(); i < rows * columns; i += half_threads) {
      const int row = i / columns;
      const int column = i % columns;
      if (row >= to.count || column >= to.head_size) continue;
      to.first[row * to.stride + column] = tile.element[row][column];
    }
  }
}

/// Multiplies what the thread has of a row of scores, the first of its two or the other, by what
/// dropout makes of them: of each 16 columns it has the same four, so that of each of its draws it
/// takes all.
DSTRAIN_DEVICE void drop_row(const DropoutMask& mask,
                             std::int64_t sequence,
                             std::int64_t group,
                             int which,
                             FragmentC (&values)[key_tile / 8]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int fragment = i / 2;
    const int column = i % 2;
    const DropoutMask::Four drawn =
        mask.draw(sequence, group, fragment * 8 + fragment_column() + column);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      values[2 * j + fragment].sums[2 * which + column] *= drawn.multiplier[j];
    }
  }
}

/// The scores, times log2(e), of what queries and keys of a tile multiply to: divided, with their
/// biases, and -infinity where a query does not see a key.
template <class Args>
DSTRAIN_DEVICE void finish_scores(const Args& args,
                                  const AttentionPlace& at,
                                  const float (&biases)[half_rows + key_tile],
                                  const Sight::Range (&visible)[2],
                                  FragmentC (&scores)[key_tile / 8]) {
  for_each_sum(scores, [&](int, int, float& score) { score *= args.query_factor; });
  if (args.bias.active()) {
    for_each_sum(scores, [&](int which, int column, float& score) {
      score += biases[column - block_row(which) + half_rows - 1];
    });
  }
  if (args.sight.all_see(at.sequence, at.query, half_rows, at.key())) return;
  const Sight::Range first = visible[0].from(at.key());
  const Sight::Range second = visible[1].from(at.key());
  for_each_sum(scores, [&](int which, int column, float& score) {
    if (!(which == 0 ? first : second).contains(column)) score = nothing;
  });
}

}  // namespace dstrain::ops::gpu
