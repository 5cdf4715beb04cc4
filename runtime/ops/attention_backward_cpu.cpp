#include <cmath>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/attention_tiles.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/dropout_mask.h"
#include "runtime/ops/lanes.h"
#include "runtime/ops/simd.h"
#include "runtime/ops/vector16.h"

namespace dstrain::ops {
namespace {

// With P the probabilities, Z the dropout multipliers, dP the gradient of P Z:
// dS = P (dP Z - delta), delta = sum_j P_j (dP Z)_j = dO . O per query. Tiles are (queries, keys).

/// What one thread works in; cut from its slot, of backward_slot_numel().
struct Space {
  float* queries;          ///< (T', D'): times the scale
  float* output_gradient;  ///< (T', D')
  float* query_gradient;   ///< (T', D')
  float* logsumexp;        ///< (T'): in powers of two, 0 for padded queries
  float* delta;            ///< (T'): likewise
  float* keys;             ///< (64, D') of one tile, as all below
  float* keys_transposed;
  float* values_transposed;
  float* key_gradient;
  float* value_gradient;
  PackedTiles left_queries;  ///< one per tile of queries, as the next three
  PackedTiles right_queries;
  PackedTiles left_output_gradient;
  PackedTiles right_output_gradient;
  PackedTiles right_keys;  ///< of one tile, as all below
  PackedTiles right_keys_transposed;
  PackedTiles right_values_transposed;
};

Space cut_space(float* slot, const HeadLayout& layout) {
  const auto take = [&slot](std::int64_t numel) {
    float* const taken = slot;
    slot += numel;
    return taken;
  };
  const std::int64_t tile = layout.tile_numel();
  const std::int64_t head = layout.tiles() * tile;
  const std::int64_t tokens = layout.tiles() * attention_block;
  Space space{};
  for (float** part : {&space.queries, &space.output_gradient, &space.query_gradient}) {
    *part = take(head);
  }
  for (float** part : {&space.logsumexp, &space.delta}) *part = take(tokens);
  for (float** part : {&space.keys, &space.keys_transposed, &space.values_transposed,
                       &space.key_gradient, &space.value_gradient}) {
    *part = take(tile);
  }
  for (PackedTiles* part : {&space.left_queries, &space.right_queries, &space.left_output_gradient,
                            &space.right_output_gradient}) {
    *part = {take(layout.tiles() * packed_words), layout};
  }
  for (PackedTiles* part :
       {&space.right_keys, &space.right_keys_transposed, &space.right_values_transposed}) {
    *part = {take(packed_words), layout};
  }
  return space;
}

/// One tile of scores of one head.
struct Tile {
  const HeadLayout& layout;
  const DropoutMask& mask;
  const Space& space;
  std::int64_t head;
  std::int64_t query_block;
  std::int64_t key_block;
  [[nodiscard]] bool diagonal() const { return query_block == key_block; }
  /// Rows that share one bound of what is visible.
  [[nodiscard]] std::int64_t strip() const {
    return diagonal() ? attention_strip : attention_block;
  }
  /// The rows of a (T', D') matrix that belong to the tile's queries.
  [[nodiscard]] float* query_rows(float* matrix) const {
    return matrix + query_block * layout.tile_numel();
  }
};

/// Raw scores become probabilities and dP becomes dS, both zero for keys after their query. With
/// `multipliers` the probabilities are left dropped.
template <bool dropped>
[[gnu::always_inline]] inline void weight_strip(const Tile& t,
                                                std::int64_t row,
                                                ScoreTile& scores,
                                                ScoreTile& gradients,
                                                const float* multipliers) {
  const std::int64_t query = t.query_block * attention_block + row;
  const float logsumexp = t.space.logsumexp[query];
  const float delta = t.space.delta[query];
  const std::int64_t keys = t.diagonal() ? row / 16 * 16 + 16 : attention_block;
  for (std::int64_t key = 0; key < keys; key += 16) {
    float* const score = scores.row(row) + key;
    float* const gradient = gradients.row(row) + key;
    const Vector16 p = fast_exp2(load16(score) - logsumexp);
    if constexpr (dropped) {
      const Vector16 z = load16(multipliers + key);
      store16(score, p * z);
      store16(gradient, p * (load16(gradient) * z - delta));
    } else {
      store16(score, p);
      store16(gradient, p * (load16(gradient) - delta));
    }
  }
  if (!t.diagonal()) return;
  for (std::int64_t key = keys - 16; key < keys; ++key) {
    scores.row(row)[key] = key > row ? 0.0F : scores.row(row)[key];
    gradients.row(row)[key] = key > row ? 0.0F : gradients.row(row)[key];
  }
}

DSTRAIN_SIMD_CLONES
void plain_kernel(const Tile& t, ScoreTile& scores, ScoreTile& gradients) {
  for (std::int64_t row = 0; row < attention_block; ++row) {
    weight_strip<false>(t, row, scores, gradients, nullptr);
  }
}

DSTRAIN_SIMD_CLONES
void dropped_kernel(const Tile& t, ScoreTile& scores, ScoreTile& gradients) {
  for (std::int64_t row = 0; row < attention_block; ++row) {
    float multipliers[dropout_group];
    dropout_multipliers(
        t.mask, t.head / t.layout.heads,
        score_dropout_group(t.layout, t.head, t.query_block * attention_block + row, t.key_block),
        multipliers);
    weight_strip<true>(t, row, scores, gradients, multipliers);
  }
}

/// Rows (queries, D') of a head: their tiles, and those packed.
struct QueryRows {
  float* values;
  PackedTiles left;
  PackedTiles right;
};

/// A tile of keys or values, transposed: (D', keys).
struct Transposed {
  const float* values;
  PackedTiles right;
};

/// scores (queries, keys) = rows (queries, D') transposed (D', keys), up to the diagonal.
void multiply_scores(const Tile& t,
                     const QueryRows& rows,
                     const Transposed& transposed,
                     ScoreTile& scores) {
  const std::int64_t columns = t.layout.tile_columns();
  for (std::int64_t row = 0; row < attention_block; row += t.strip()) {
    multiply_tile({.c = scores.row(row),
                   .c_row = attention_block,
                   .a = t.query_rows(rows.values) + row * columns,
                   .a_row = columns,
                   .a_column = 1,
                   .b = transposed.values,
                   .b_row = attention_block,
                   .m = t.strip(),
                   .n = row + t.strip(),
                   .k = columns,
                   .rounds = t.layout.rounds,
                   .a_packed = rows.left.left(t.query_block, row),
                   .b_packed = transposed.right.right(0)});
  }
}

/// target (keys, D') [+]= scores^T (keys, queries) rows (queries, D'): a gradient of keys or
/// values. The first tile of a block of keys, on the diagonal, overwrites.
void add_key_gradient(const Tile& t, ScoreTile& scores, const QueryRows& rows, float* target) {
  const std::int64_t columns = t.layout.tile_columns();
  for (std::int64_t key = 0; key < attention_block; key += t.strip()) {
    const std::int64_t first_query = t.diagonal() ? key : 0;
    const TileProduct product{.c = target + key * columns,
                              .c_row = columns,
                              .a = scores.row(first_query) + key,
                              .a_row = 1,
                              .a_column = attention_block,
                              .b = t.query_rows(rows.values) + first_query * columns,
                              .b_row = columns,
                              .m = t.strip(),
                              .n = columns,
                              .k = attention_block - first_query,
                              .rounds = t.layout.rounds,
                              .b_packed = rows.right.right(t.query_block, first_query)};
    multiply_tile(product, t.diagonal() ? Into::store : Into::add);
  }
}

/// query_gradient (queries, D') [+]= gradients (queries, keys) keys (keys, D'). The first block of
/// keys overwrites.
void add_query_gradient(const Tile& t, ScoreTile& gradients) {
  const std::int64_t columns = t.layout.tile_columns();
  for (std::int64_t row = 0; row < attention_block; row += t.strip()) {
    const TileProduct product{.c = t.query_rows(t.space.query_gradient) + row * columns,
                              .c_row = columns,
                              .a = gradients.row(row),
                              .a_row = attention_block,
                              .a_column = 1,
                              .b = t.space.keys,
                              .b_row = columns,
                              .m = t.strip(),
                              .n = columns,
                              .k = row + t.strip(),
                              .rounds = t.layout.rounds,
                              .b_packed = t.space.right_keys.right(0)};
    multiply_tile(product, t.key_block == 0 ? Into::store : Into::add);
  }
}

void run_tile(const Tile& t) {
  ScoreTile scores;
  ScoreTile gradients;
  const Space& s = t.space;
  const QueryRows queries{s.queries, s.left_queries, s.right_queries};
  const QueryRows output_gradient{s.output_gradient, s.left_output_gradient,
                                  s.right_output_gradient};
  multiply_scores(t, queries, {s.keys_transposed, s.right_keys_transposed}, scores);
  multiply_scores(t, output_gradient, {s.values_transposed, s.right_values_transposed}, gradients);
  if (t.mask.active()) {
    dropped_kernel(t, scores, gradients);
  } else {
    plain_kernel(t, scores, gradients);
  }
  add_key_gradient(t, scores, output_gradient, s.value_gradient);
  add_key_gradient(t, gradients, queries, s.key_gradient);
  add_query_gradient(t, gradients);
}

DSTRAIN_SIMD_CLONES
float dot(const float* a, const float* b, std::int64_t count) {
  return sum_lanes(count, [a, b](std::int64_t i) { return a[i] * b[i]; });
}

/// The tensors of one head.
template <class T>
struct Head {
  const AttentionBackwardArgs& args;
  const HeadLayout& layout;
  std::int64_t head;
  [[nodiscard]] HeadRows<const T> projection(Projection part, std::int64_t first) const {
    return head_rows<const T>(elements<T>(args.qkv), layout, head, part).from(first);
  }
  [[nodiscard]] HeadRows<T> gradient(Projection part, std::int64_t first) const {
    return head_rows(elements<T>(args.qkv_gradient), layout, head, part).from(first);
  }
  [[nodiscard]] HeadRows<const T> rows(const TensorView& view, std::int64_t first) const {
    return head_rows<const T>(elements<T>(view), layout, head).from(first);
  }
};

/// Packs the tile of keys and values that is at work.
void pack_keys(const Space& space, std::int64_t columns) {
  space.right_keys.set_right(0, {space.keys, columns, 1, attention_block, columns});
  space.right_keys_transposed.set_right(
      0, {space.keys_transposed, attention_block, 1, columns, attention_block});
  space.right_values_transposed.set_right(
      0, {space.values_transposed, attention_block, 1, columns, attention_block});
}

/// Fills what a block of queries brings along.
template <class T>
void load_queries(const Head<T>& h, std::int64_t block, const Space& space) {
  const HeadLayout& layout = h.layout;
  const std::int64_t first = block * attention_block;
  const std::int64_t count = layout.queries_in(block);
  const std::int64_t columns = layout.tile_columns();
  const float scale = log2_e / std::sqrt(static_cast<float>(layout.head_size()));
  float* const gradient = space.output_gradient + first * columns;
  float* const output = space.keys;  // free until the keys come
  load_tile(h.projection(Projection::query, first), count, scale, space.queries + first * columns);
  load_tile(h.rows(h.args.output_gradient, first), count, 1.0F, gradient);
  load_tile(h.rows(h.args.output, first), count, 1.0F, output);
  const TileOperand query_tile{space.queries + first * columns, columns, 1, attention_block,
                               columns};
  const TileOperand gradient_tile{gradient, columns, 1, attention_block, columns};
  space.left_queries.set_left(block, query_tile);
  space.right_queries.set_right(block, query_tile);
  space.left_output_gradient.set_left(block, gradient_tile);
  space.right_output_gradient.set_right(block, gradient_tile);
  const float* const logsumexp = floats(h.args.logsumexp) + h.head * layout.tokens + first;
  for (std::int64_t i = 0; i < attention_block; ++i) {
    space.logsumexp[first + i] = i < count ? logsumexp[i] * log2_e : 0.0F;
    space.delta[first + i] = dot(output + i * columns, gradient + i * columns, columns);
  }
}

template <class T>
void run_head(const AttentionBackwardArgs& args,
              const HeadLayout& layout,
              std::int64_t head,
              const Space& space) {
  const Head<T> h{args, layout, head};
  const DropoutMask mask(args.dropout);
  const std::int64_t columns = layout.tile_columns();
  for (std::int64_t block = 0; block < layout.tiles(); ++block) load_queries(h, block, space);
  for (std::int64_t key_block = 0; key_block < layout.tiles(); ++key_block) {
    const std::int64_t first = key_block * attention_block;
    const std::int64_t count = layout.queries_in(key_block);
    load_tile(h.projection(Projection::value, first), count, 1.0F, space.keys);
    transpose_tile(space.keys, attention_block, columns, space.values_transposed);
    load_tile(h.projection(Projection::key, first), count, 1.0F, space.keys);
    transpose_tile(space.keys, attention_block, columns, space.keys_transposed);
    pack_keys(space, columns);
    for (std::int64_t block = key_block; block < layout.tiles(); ++block) {
      run_tile({layout, mask, space, head, block, key_block});
    }
    store_tile(space.key_gradient, ln_2, h.gradient(Projection::key, first), count);
    store_tile(space.value_gradient, 1.0F, h.gradient(Projection::value, first), count);
    store_tile(space.query_gradient + first * columns,
               1.0F / std::sqrt(static_cast<float>(layout.head_size())),
               h.gradient(Projection::query, first), count);
  }
}

}  // namespace

namespace cpu {

void attention_backward(const AttentionBackwardArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args, layout = attention_layout(args.qkv, args.logsumexp)] {
    with_element_type(args.qkv.dtype(), [&](auto element) {
      for_heads(layout, [&](std::int64_t head, std::int64_t slot) {
        run_head<decltype(element)>(
            args, layout, head,
            cut_space(floats(args.workspace) + slot * backward_slot_numel(layout), layout));
      });
    });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
