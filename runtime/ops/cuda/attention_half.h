#pragma once
#include <cstdint>
#include <limits>

#include "runtime/ops/cuda/attention_rows.h"
#include "runtime/ops/cuda/attention_rules.h"
#include "runtime/ops/cuda/dropout_mask.h"
#include "runtime/ops/cuda/tensor_core.h"

namespace dstrain::ops::gpu {

// Attention of 16-bit tensors on tensor cores, organized like FlashAttention-2 (Dao 2023): a warp
// holds 16 or 32 rows of its block's result in registers, and one product's result is the next
// one's operand. The other operand comes from shared memory and serves all rows of the warp.
//
// These are rounded to 16 bits: queries and keys after rotation, probabilities before they multiply
// values or gradients, score gradients before they multiply queries or keys, and stored results.
// Scores (divided after the product), sums and statistics are f32.

/// The score of a key that a query does not see.
inline constexpr float nothing = -std::numeric_limits<float>::infinity();

inline constexpr int half_threads = 128;
inline constexpr int half_rows = 64;

/// The row in the block of the thread's first (0) or second (1) row in one of its warp's 16-row
/// tiles.
DSTRAIN_DEVICE int block_row(int which, int tile = 0, int tiles = 1) {
  return (warp() * tiles + tile) * 16 + fragment_row() + 8 * which;
}
/// Calls `body(which, column, value)` for each of the thread's elements in its two rows.
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
/// The maximum over the threads of a row.
DSTRAIN_DEVICE float largest_of_row(float value) {
  value = fmaxf(value, shuffle_xor(value, 1));
  return fmaxf(value, shuffle_xor(value, 2));
}
DSTRAIN_DEVICE float sum_of_row(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}

/// Waits until all threads' copies have arrived and their earlier work is done.
DSTRAIN_DEVICE void arrive() {
  wait_for_copies();
  sync();
}

/// The number of a tile's rows that exist.
template <int rows, class T>
DSTRAIN_DEVICE int rows_there(const TileRows<T>& from) {
  return from.count < rows ? static_cast<int>(from.count) : rows;
}

/// The identity order of rows.
struct RowInPlace {
  DSTRAIN_DEVICE int operator()(int row) const { return row; }
};

/// Starts copying rows into a tile, padded with zeros. It is complete after arrive().
template <int rows, int columns, class T, class Order = RowInPlace>
DSTRAIN_DEVICE void start_tile(const TileRows<const T>& from,
                               bool aligned,
                               HalfTile<T, rows, columns>& tile,
                               const Order& place = {}) {
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
      start_copy(&tile.element[place(row)][column], source, row < count);
      source += at_once * from.stride;
    }
  } else {
#pragma unroll 1
    for (int i = thread(); i < rows * columns; i += half_threads) {
      const int row = i / columns;
      const int column = i % columns;
      const bool inside = row < from.count && column < from.head_size;
      tile.element[place(row)][column] = inside ? from.first[row * from.stride + column] : T{};
    }
  }
}

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

/// Multiplies the thread's elements of its first or second row by their dropout multipliers. It has
/// the same four of every 16 columns, so it uses all four numbers of each draw.
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

/// The factor that scores still need after finish_scores(), which divides them if there are biases.
template <class Args>
DSTRAIN_DEVICE float score_factor(const Args& args) {
  return args.bias.active() ? 1.0F : args.query_factor;
}

/// Turns products of the warp's queries and a tile's keys into scores times
/// log2(e) / score_factor(): adds biases and writes -infinity where a query does not see a key.
template <class Args, int tiles, std::size_t size>
DSTRAIN_DEVICE void finish_scores(const Args& args,
                                  const AttentionPlace& at,
                                  const float (&biases)[size],
                                  FragmentC (&scores)[tiles][key_tile / 8]) {
  constexpr int rows = tiles * half_rows;
  static_assert(size == rows + key_tile);
  if (args.bias.active()) {
    // A thread's biases lie at constant offsets from the one of its first row and column.
    const int first = block_row(0, 0, tiles);
    const float* const own = &biases[fragment_column() - first + rows - 1];
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      for_each_sum(scores[tile], [&](int which, int column, float& score) {
        const int below = tile * 16 + which * 8;
        score = score * args.query_factor + own[column - fragment_column() - below];
      });
    }
  }
  const std::int64_t query = at.query + warp() * tiles * 16;
  if (args.sight.all_see(at.sequence, query, tiles * 16, at.key(), key_tile)) return;
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
    const auto visible = [&](int which) {
      return args.sight.of(at.sequence, at.query + block_row(which, tile, tiles)).from(at.key());
    };
    const Sight::Range first = visible(0);
    const Sight::Range second = visible(1);
    for_each_sum(scores[tile], [&](int which, int column, float& score) {
      if (!(which == 0 ? first : second).contains(column)) score = nothing;
    });
  }
}

}  // namespace dstrain::ops::gpu
