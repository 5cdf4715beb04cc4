#include <algorithm>
#include <limits>
#include <type_traits>

#include "runtime/ops/cuda/attention_forward.h"
#include "runtime/ops/cuda/attention_tiles.h"
#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::ops::gpu {
namespace {

constexpr int query_tile = 64;
constexpr int own_rows = query_tile / 16;
constexpr int own_keys = key_tile / 16;

using Forward = AttentionForward<float>;
using Place = AttentionPlace;

template <int columns>
struct Shared {
  float queries[query_tile][columns + padding];
  float keys[key_tile][columns + padding];  ///< then values
  float weights[query_tile][key_tile + padding];
  float biases[query_tile + key_tile];
};

/// A thread's state of its rows.
template <int columns>
struct Rows {
  float largest[own_rows];
  float sum[own_rows];
  float factor[own_rows];  ///< rescales the sums of the tiles before the last
  Sight::Range visible[own_rows];
  float output[own_rows][columns / 16];
};

/// The maximum over the 16 threads of a row.
DSTRAIN_DEVICE float largest_of_row(float value) {
#pragma unroll
  for (int lanes = 8; lanes > 0; lanes /= 2) value = fmaxf(value, shuffle_xor(value, lanes));
  return value;
}
DSTRAIN_DEVICE float sum_of_row(float value) {
#pragma unroll
  for (int lanes = 8; lanes > 0; lanes /= 2) value += shuffle_xor(value, lanes);
  return value;
}

template <int columns>
DSTRAIN_DEVICE void multiply_scores(const Shared<columns>& s, float (&scores)[own_rows][own_keys]) {
#pragma unroll
  for (int i = 0; i < own_rows; ++i) {
#pragma unroll
    for (int j = 0; j < own_keys; ++j) scores[i][j] = 0;
  }
#pragma unroll 2
  for (int k = 0; k < columns; k += 4) {
    float4 queries[own_rows];
    float4 keys[own_keys];
#pragma unroll
    for (int i = 0; i < own_rows; ++i) queries[i] = load4(&s.queries[tile_y() + 16 * i][k]);
#pragma unroll
    for (int j = 0; j < own_keys; ++j) keys[j] = load4(&s.keys[tile_x() + 16 * j][k]);
#pragma unroll
    for (int i = 0; i < own_rows; ++i) {
#pragma unroll
      for (int j = 0; j < own_keys; ++j) scores[i][j] = dot4(queries[i], keys[j], scores[i][j]);
    }
  }
}

/// Turns the scores of a row into weights 2^(score - largest), and updates its maximum and sum.
template <int columns>
DSTRAIN_DEVICE void weigh_row(Rows<columns>& rows, int i, float (&scores)[own_keys]) {
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  float largest = rows.largest[i];
#pragma unroll
  for (const float score : scores) largest = fmaxf(largest, score);
  largest = largest_of_row(largest);
  const float base = largest == nothing ? 0.0F : largest;
  float sum = 0;
#pragma unroll
  for (float& score : scores) {
    score = exp2f(score - base);
    sum += score;
  }
  rows.factor[i] = exp2f(rows.largest[i] - base);
  rows.sum[i] = rows.sum[i] * rows.factor[i] + sum_of_row(sum);
  rows.largest[i] = largest;
}

/// Computes weights from queries and keys, with dropout applied.
template <int columns>
DSTRAIN_DEVICE void compute_weights(const Forward& args,
                                    const Place& at,
                                    Shared<columns>& s,
                                    Rows<columns>& rows) {
  float scores[own_rows][own_keys];
  multiply_scores(s, scores);
#pragma unroll
  for (int i = 0; i < own_rows; ++i) {
    const int row = tile_y() + 16 * i;
#pragma unroll
    for (int j = 0; j < own_keys; ++j) {
      const int column = tile_x() + 16 * j;
      if (args.bias.active()) scores[i][j] += s.biases[column - row + query_tile - 1];
      if (!rows.visible[i].contains(at.key() + column)) {
        scores[i][j] = -std::numeric_limits<float>::infinity();
      }
    }
    weigh_row(rows, i, scores[i]);
    DropoutMask::Four drawn{{1, 1, 1, 1}};
    if (args.mask.active()) {
      drawn = args.mask.draw(at.sequence,
                             dropout_group(args.sizes, at.head, at.query + row, at.tile), tile_x());
    }
#pragma unroll
    for (int j = 0; j < own_keys; ++j) {
      s.weights[row][tile_x() + 16 * j] = scores[i][j] * drawn.multiplier[j];
    }
  }
}

/// output = output factor + weights values.
template <int columns>
DSTRAIN_DEVICE void add_values(const Shared<columns>& s, Rows<columns>& rows) {
#pragma unroll
  for (int i = 0; i < own_rows; ++i) {
#pragma unroll
    for (float& output : rows.output[i]) output *= rows.factor[i];
  }
#pragma unroll 2
  for (int key = 0; key < key_tile; ++key) {
    float weights[own_rows];
#pragma unroll
    for (int i = 0; i < own_rows; ++i) weights[i] = s.weights[tile_y() + 16 * i][key];
#pragma unroll
    for (int j = 0; j < columns / 16; ++j) {
      const float value = s.keys[key][tile_x() + 16 * j];
#pragma unroll
      for (int i = 0; i < own_rows; ++i) {
        rows.output[i][j] = fmaf(weights[i], value, rows.output[i][j]);
      }
    }
  }
}

template <int columns>
DSTRAIN_DEVICE void store_rows(const Forward& args, const Place& at, const Rows<columns>& rows) {
  const auto head_size = static_cast<int>(args.sizes.head_size);
#pragma unroll
  for (int i = 0; i < own_rows; ++i) {
    const std::int64_t query = at.query + tile_y() + 16 * i;
    if (query >= args.sizes.tokens) continue;
    const bool sees = rows.sum[i] > 0;  // a query that sees no key gets zeros
    const float inverse = sees ? 1.0F / rows.sum[i] : 0.0F;
    float* const output = args.output.at(at.sequence, at.head, query, head_size);
#pragma unroll
    for (int j = 0; j < columns / 16; ++j) {
      const int column = tile_x() + 16 * j;
      if (column < head_size) output[column] = rows.output[i][j] * inverse;
    }
    if (tile_x() != 0) continue;
    args.logsumexp[(at.sequence * args.sizes.heads + at.head) * args.sizes.tokens + query] =
        sees ? ln_2 * (rows.largest[i] + log2f(rows.sum[i])) : 0.0F;
  }
}

/// Grid: (query tiles, heads, sequences).
template <int columns>
DSTRAIN_KERNEL_AT_ONCE(attention_threads, blocks_at_once(columns))
forward_kernel(DSTRAIN_ARGUMENT Forward args) {
  auto& s = shared<Shared<columns>>();
  Place at(block_z(), block_y(), block_y() / args.sizes.group());
  at.query = block_x() * query_tile;
  load_turned<query_tile, columns, float>(query_rows(args.sizes, args.query, at), args.query_factor,
                                          args.rotary, s.queries);
  Rows<columns> rows{};
#pragma unroll
  for (int i = 0; i < own_rows; ++i) {
    rows.largest[i] = -std::numeric_limits<float>::infinity();
    rows.visible[i] = args.sight.of(at.sequence, at.query + tile_y() + 16 * i);
  }
  const Sight::Range range = args.sight.of_tile(at.sequence, at.query, query_tile);
  for (at.tile = range.begin / key_tile; at.key() < range.end; ++at.tile) {
    sync();
    load_turned<key_tile, columns, float>(key_rows(args.sizes, args.key, at), 1, args.rotary,
                                          s.keys);
    load_biases<attention_threads, query_tile>(args.bias, args.bias_table, args.sizes.heads,
                                               at.head, at.key() - at.query, s.biases);
    sync();
    compute_weights<columns>(args, at, s, rows);
    sync();
    load_tile<key_tile, columns, float>(key_rows(args.sizes, args.value, at), 1, s.keys);
    sync();
    add_values(s, rows);
  }
  store_rows<columns>(args, at, rows);
}

/// For f32: products are exact up to the order of their sums.
void launch_forward(const Forward& forward, StreamView stream) {
  const AttentionSizes& sizes = forward.sizes;
  with_columns(sizes.head_size, [&](auto columns) {
    launch("attention_forward", forward_kernel<columns>,
           {.x = divide_up(sizes.tokens, query_tile),
            .y = sizes.heads,
            .z = sizes.sequences,
            .threads = attention_threads,
            .shared_bytes = sizeof(Shared<columns>)},
           forward, stream);
  });
}

template <class T>
AttentionForward<T> make_arguments(const AttentionArgs& args) {
  const AttentionSizes& sizes = args.sizes;
  return {.sizes = sizes,
          .rotary = rotary_of(args.rule, std::max(sizes.tokens, sizes.keys)),
          .query_factor = log2_e / args.rule.divisor,
          .sight = Sight(args),
          .bias = DistanceBias(args),
          .bias_table = elements<const T>(args.bias),
          .mask = DropoutMask(args.dropout),
          .query = head_matrix<const T>(args.query, sizes.tokens),
          .key = head_matrix<const T>(args.key, sizes.keys),
          .value = head_matrix<const T>(args.value, sizes.keys),
          .output = head_matrix<T>(args.output, sizes.tokens),
          .logsumexp = floats(args.logsumexp)};
}

}  // namespace

void attention_forward(const AttentionArgs& args, StreamView stream) {
  with_element_type(args.query.dtype(), [&](auto element) {
    using T = decltype(element);
    const AttentionForward<T> forward = make_arguments<T>(args);
    if constexpr (std::is_same_v<T, float>) {
      launch_forward(forward, stream);
    } else {
      Arena arena(args.workspace);
      launch_half_forward(forward, TurnedHeads(arena, args.sizes, args.rule), stream);
    }
  });
}

}  // namespace dstrain::ops::gpu
