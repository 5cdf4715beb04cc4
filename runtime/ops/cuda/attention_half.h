#pragma once
#include <cstdint>
#include <limits>

#include "runtime/ops/cuda/attention_rows.h"
#include "runtime/ops/cuda/attention_rules.h"
#include "runtime/ops/cuda/dropout_mask.h"
#include "runtime/ops/cuda/tensor_core.h"

namespace dstrain::ops::gpu {

// Attention of 16-bit tensors by tensor cores, organized like FlashAttention-2 (Dao 2023): a warp
// has 16 or 32 rows of its block's result in registers, and the result of one product enters the
// next from there. The other factor, loaded from shared memory, serves all rows of the warp.
//
// Rounded to 16 bits are: queries and keys after rotation, probabilities before they multiply
// values or gradients, gradients of scores before they multiply queries or keys, and stored
// results. Everything else is f32: scores, which are divided after the product, sums, statistics.

/// The score of a key that a query does not see.
inline constexpr float nothing = -std::numeric_limits<float>::infinity();

inline constexpr int half_threads = 128;
inline constexpr int half_rows = 64;

/// Which row of its block is the first (0) or second (1) that a thread has elements of, in one of
/// the tiles of 16 rows of its warp.
DSTRAIN_DEVICE int block_row(int which, int tile = 0, int tiles = 1) {
  return (warp() * tiles + tile) * 16 + fragment_row() + 8 * which;
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

/// Waits for the thread's copies and those of the others; all have finished their earlier work.
DSTRAIN_DEVICE void arrive() {
  wait_for_copies();
  sync();
}

/// How many of a tile's rows there are.
template <int rows, class T>
DSTRAIN_DEVICE int rows_there(const TileRows<T>& from) {
  return from.count < rows ? static_cast<int>(from.count) : rows;
}

/// Where a row of a tile lies in it.
struct RowInPlace {
  DSTRAIN_DEVICE int operator()(int row) const { return row; }
};

/// tile = rows, with zeros around them, once the threads have arrived.
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

/// What finish_scores() leaves to multiply scores by: with biases they are divided already.
template <class Args>
DSTRAIN_DEVICE float score_factor(const Args& args) {
  return args.bias.active() ? 1.0F : args.query_factor;
}

/// The scores, times log2(e) / score_factor(), of what a warp's queries and keys of a tile multiply
/// to: with their biases, and -infinity where a query does not see a key.
template <class Args, int tiles, std::size_t size>
DSTRAIN_DEVICE void finish_scores(const Args& args,
                                  const AttentionPlace& at,
                                  const float (&biases)[size],
                                  FragmentC (&scores)[tiles][key_tile / 8]) {
  constexpr int rows = tiles * half_rows;
  static_assert(size == rows + key_tile);
  if (args.bias.active()) {
    // All of a thread lie at constant offsets from that of its first row and column.
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
