#include <cmath>
#include <limits>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/attention_tiles.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/dropout_mask.h"
#include "runtime/ops/simd.h"
#include "runtime/ops/vector16.h"

namespace dstrain::ops {
namespace {

// Tiles are (keys, queries): sixteen queries run side by side, so that the softmax over keys needs
// no sums across lanes, and neither keys nor values are ever transposed. Scores are scaled so that
// probabilities are powers of two: 2^(scaled score - log2 sum).

/// Running softmax of the queries of a block, in powers of two.
struct RunningSoftmax {
  alignas(64) float largest[attention_block];
  alignas(64) float sum[attention_block];
  alignas(64) float factors[attention_block];  ///< for what was summed before the last tile
};

/// What one thread works in; cut from its slot, of forward_slot_numel().
struct Space {
  float* keys;     ///< (T', D')
  float* values;   ///< (T', D')
  float* queries;  ///< (D', 64): times the scale
  float* outputs;  ///< (D', 64)
  PackedTiles left_keys;
  PackedTiles left_values;  ///< transposed
  PackedTiles right_queries;
};

Space cut_space(float* slot, const HeadLayout& layout) {
  const std::int64_t head_numel = layout.tiles() * layout.tile_numel();
  const std::int64_t packed_numel = layout.tiles() * packed_words;
  float* const packed = slot + 2 * head_numel + 2 * layout.tile_numel();
  return {.keys = slot,
          .values = slot + head_numel,
          .queries = slot + 2 * head_numel,
          .outputs = slot + 2 * head_numel + layout.tile_numel(),
          .left_keys = {packed, layout},
          .left_values = {packed + packed_numel, layout},
          .right_queries = {packed + 2 * packed_numel, layout}};
}

/// Scores of keys after their query become the lowest number, whose power of two is 0.
[[gnu::always_inline]] inline void mask_strip(float* scores) {
  for (std::int64_t key = 0; key < attention_strip; ++key) {
    for (std::int64_t query = 0; query < attention_strip; ++query) {
      float& score = scores[key * attention_block + query];
      score = query < key ? std::numeric_limits<float>::lowest() : score;
    }
  }
}

/// Turns scores into weights 2^(score - largest) and moves the running maximum and sum on. On the
/// diagonal, strips (16 x 16) below it are left alone.
DSTRAIN_SIMD_CLONES
void softmax_kernel(ScoreTile& tile, bool diagonal, RunningSoftmax& softmax) {
  constexpr std::int64_t strip = attention_strip;
  for (std::int64_t query = 0; query < attention_block; query += strip) {
    float* const scores = tile.values + query;
    const std::int64_t keys = diagonal ? query + strip : attention_block;
    if (diagonal) mask_strip(scores + query * attention_block);
    const Vector16 before = load16(softmax.largest + query);
    Vector16 even = before;
    Vector16 odd = before;
    for (std::int64_t key = 0; key < keys; key += 2) {
      even = larger(load16(scores + key * attention_block), even);
      odd = larger(load16(scores + (key + 1) * attention_block), odd);
    }
    const Vector16 largest = larger(even, odd);
    Vector16 sum{};
    for (std::int64_t key = 0; key < keys; ++key) {
      float* const score = scores + key * attention_block;
      const Vector16 weight = fast_exp2(load16(score) - largest);
      sum += weight;
      store16(score, weight);
    }
    const Vector16 factor = fast_exp2(before - largest);
    store16(softmax.largest + query, largest);
    store16(softmax.sum + query, load16(softmax.sum + query) * factor + sum);
    store16(softmax.factors + query, factor);
  }
}

/// outputs (D', 64) columns are divided by their sums.
DSTRAIN_SIMD_CLONES
void divide_kernel(float* outputs, const float* sums, std::int64_t rows) {
  float inverse[attention_block];
  for (std::int64_t i = 0; i < attention_block; ++i) inverse[i] = 1.0F / sums[i];
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < attention_block; ++i)
      outputs[row * attention_block + i] *= inverse[i];
  }
}

/// One block of queries of one head.
struct QueryBlock {
  const HeadLayout& layout;
  const DropoutMask& mask;
  Space space;
  std::int64_t head;
  std::int64_t block;
};

DSTRAIN_SIMD_CLONES
void draw_kernel(const QueryBlock& q, std::int64_t key_tile, ScoreTile& multipliers) {
  for (std::int64_t i = 0; i < attention_block; ++i) {
    dropout_multipliers(
        q.mask, q.head / q.layout.heads,
        score_dropout_group(q.layout, q.head, q.block * attention_block + i, key_tile),
        multipliers.row(i));
  }
}

DSTRAIN_SIMD_CLONES
void multiply_kernel(ScoreTile& weights, const ScoreTile& by) {
  for (std::int64_t i = 0; i < attention_block * attention_block; ++i) {
    weights.values[i] *= by.values[i];
  }
}

void drop_weights(const QueryBlock& q, std::int64_t key_tile, ScoreTile& weights) {
  ScoreTile drawn;
  ScoreTile multipliers;
  draw_kernel(q, key_tile, drawn);
  transpose_tile(drawn.values, attention_block, attention_block, multipliers.values);
  multiply_kernel(weights, multipliers);
}

/// scores (keys, queries) = keys (keys, D') queries (D', queries); above the diagonal only.
void multiply_scores(const QueryBlock& q, std::int64_t key_tile, ScoreTile& scores) {
  const std::int64_t columns = q.layout.tile_columns();
  const std::int64_t rows = key_tile == q.block ? attention_strip : attention_block;
  const float* const keys = q.space.keys + key_tile * q.layout.tile_numel();
  for (std::int64_t key = 0; key < attention_block; key += rows) {
    multiply_tile({.c = scores.row(key) + key,
                   .c_row = attention_block,
                   .a = keys + key * columns,
                   .a_row = columns,
                   .a_column = 1,
                   .b = q.space.queries + key,
                   .b_row = attention_block,
                   .m = rows,
                   .n = attention_block - key,
                   .k = columns,
                   .rounds = q.layout.rounds,
                   .a_packed = q.space.left_keys.left(key_tile, key),
                   .b_packed = q.space.right_queries.right(0, 0, key)});
  }
}

/// outputs (D', queries) = outputs diag(factors) + values^T (D', keys) weights (keys, queries).
void add_values(const QueryBlock& q,
                std::int64_t key_tile,
                ScoreTile& weights,
                const float* factors) {
  const bool diagonal = key_tile == q.block;
  const std::int64_t columns = diagonal ? attention_strip : attention_block;
  for (std::int64_t query = 0; query < attention_block; query += columns) {
    const TileProduct product{.c = q.space.outputs + query,
                              .c_row = attention_block,
                              .a = q.space.values + key_tile * q.layout.tile_numel(),
                              .a_row = 1,
                              .a_column = q.layout.tile_columns(),
                              .b = weights.values + query,
                              .b_row = attention_block,
                              .m = q.layout.tile_columns(),
                              .n = columns,
                              .k = query + columns,
                              .factors = factors + query,
                              .rounds = q.layout.rounds,
                              .a_packed = q.space.left_values.left(key_tile)};
    multiply_tile(product, key_tile == 0 ? Into::store : Into::scale_add);
  }
}

template <class T>
void attend(const QueryBlock& q,
            const HeadRows<const T>& queries,
            const HeadRows<T>& output,
            float* logsumexp) {
  const HeadLayout& layout = q.layout;
  const Space& space = q.space;
  const std::int64_t count = layout.queries_in(q.block);
  const float scale = log2_e / std::sqrt(static_cast<float>(layout.head_size()));
  load_tile(queries, count, scale, space.outputs);
  transpose_tile(space.outputs, attention_block, layout.tile_columns(), space.queries);
  space.right_queries.set_right(
      0, {space.queries, attention_block, 1, layout.tile_columns(), attention_block});
  ScoreTile scores;
  RunningSoftmax softmax;
  std::fill_n(softmax.largest, attention_block, std::numeric_limits<float>::lowest());
  std::fill_n(softmax.sum, attention_block, 0.0F);
  for (std::int64_t tile = 0; tile <= q.block; ++tile) {
    multiply_scores(q, tile, scores);
    softmax_kernel(scores, tile == q.block, softmax);
    if (q.mask.active()) drop_weights(q, tile, scores);
    add_values(q, tile, scores, softmax.factors);
  }
  divide_kernel(space.outputs, softmax.sum, layout.tile_columns());
  transpose_tile(space.outputs, layout.tile_columns(), attention_block, space.queries);
  store_tile(space.queries, 1.0F, output, count);
  for (std::int64_t i = 0; i < count; ++i) {
    logsumexp[i] = ln_2 * (softmax.largest[i] + std::log2(softmax.sum[i]));
  }
}

template <class T>
void run_head(const AttentionArgs& args, const HeadLayout& layout, std::int64_t head, Space space) {
  const T* const qkv = elements<T>(args.qkv);
  const DropoutMask mask(args.dropout);
  const auto queries = head_rows(qkv, layout, head, Projection::query);
  const auto keys = head_rows(qkv, layout, head, Projection::key);
  const auto values = head_rows(qkv, layout, head, Projection::value);
  const auto output = head_rows(elements<T>(args.output), layout, head);
  for (std::int64_t block = 0; block < layout.tiles(); ++block) {
    const std::int64_t first = block * attention_block;
    const std::int64_t count = layout.queries_in(block);
    float* const key_tile = space.keys + block * layout.tile_numel();
    float* const value_tile = space.values + block * layout.tile_numel();
    const std::int64_t columns = layout.tile_columns();
    load_tile(keys.from(first), count, 1.0F, key_tile);
    load_tile(values.from(first), count, 1.0F, value_tile);
    space.left_keys.set_left(block, {key_tile, columns, 1, attention_block, columns});
    space.left_values.set_left(block, {value_tile, 1, columns, columns, attention_block});
    attend<T>({layout, mask, space, head, block}, queries.from(first), output.from(first),
              floats(args.logsumexp) + head * layout.tokens + first);
  }
}

}  // namespace

namespace cpu {

void attention_forward(const AttentionArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args, layout = attention_layout(args.qkv, args.logsumexp)] {
    with_element_type(args.qkv.dtype(), [&](auto element) {
      for_heads(layout, [&](std::int64_t head, std::int64_t slot) {
        run_head<decltype(element)>(
            args, layout, head,
            cut_space(floats(args.workspace) + slot * forward_slot_numel(layout), layout));
      });
    });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
