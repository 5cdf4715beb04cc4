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

/// Memory of one thread, cut from its slot of backward_slot_numel() floats.
struct Space {
  float* queries;          ///< (T', D'): times the scale
  float* output_gradient;  ///< (T', D')
  float* query_gradient;   ///< (T', D')
  float* logsumexp;        ///< (T'): in powers of two, 0 for padded queries
  float* delta;            ///< (T'): likewise
  float* keys;             ///< (64, D') of one tile, like all below
  float* keys_transposed;
  float* values_transposed;
  float* key_gradient;  ///< or, if heads share keys, (S', D'), like the next one
  float* value_gradient;
  PackedTiles left_queries;  ///< one per tile of queries, like the next three
  PackedTiles right_queries;
  PackedTiles left_output_gradient;
  PackedTiles right_output_gradient;
  PackedTiles right_keys;  ///< of one tile, like all below
  PackedTiles right_keys_transposed;
  PackedTiles right_values_transposed;
  float* by_distance;  ///< with biases: sums of the scores' gradients
};

Space cut_space(float* slot, const HeadLayout& layout) {
  const auto take = [&slot](std::int64_t numel) {
    float* const taken = slot;
    slot += numel;
    return taken;
  };
  const std::int64_t tile = layout.tile_numel();
  const std::int64_t tiles = layout.query_tiles();
  const std::int64_t head = tiles * tile;
  const std::int64_t tokens = tiles * attention_block;
  const std::int64_t gradients = layout.group() > 1 ? layout.key_tiles() * tile : tile;
  Space space{};
  for (float** part : {&space.queries, &space.output_gradient, &space.query_gradient}) {
    *part = take(head);
  }
  for (float** part : {&space.logsumexp, &space.delta}) *part = take(tokens);
  for (float** part : {&space.keys, &space.keys_transposed, &space.values_transposed}) {
    *part = take(tile);
  }
  for (float** part : {&space.key_gradient, &space.value_gradient}) *part = take(gradients);
  for (PackedTiles* part : {&space.left_queries, &space.right_queries, &space.left_output_gradient,
                            &space.right_output_gradient}) {
    *part = {take(tiles * packed_words), layout};
  }
  for (PackedTiles* part :
       {&space.right_keys, &space.right_keys_transposed, &space.right_values_transposed}) {
    *part = {take(packed_words), layout};
  }
  space.by_distance = take(layout.distances());
  return space;
}

/// One tile of scores of one head.
struct Tile {
  const HeadLayout& layout;
  const RelativeBias& bias;
  const DropoutMask& mask;
  const Visibility& sight;
  const Space& space;
  std::int64_t sequence;
  std::int64_t head;
  std::int64_t query_block;
  std::int64_t key_block;
  Into into_keys;  ///< how the gradients of its keys and values are stored
  [[nodiscard]] Visibility::Tile visible() const { return sight.tile(query_block, key_block); }
  [[nodiscard]] bool diagonal() const { return visible() == Visibility::Tile::diagonal; }
  /// Rows that share one bound of visibility.
  [[nodiscard]] std::int64_t strip() const {
    return diagonal() ? attention_strip : attention_block;
  }
  /// The rows of a (T', D') matrix that belong to the tile's queries.
  [[nodiscard]] float* query_rows(float* matrix) const {
    return matrix + query_block * layout.tile_numel();
  }
};

/// Turns raw scores into probabilities and dP into dS, both zero for keys after their query. With
/// `multipliers`, dropout is applied to the probabilities.
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
        t.mask, t.sequence,
        score_dropout_group(t.layout, t.head, t.query_block * attention_block + row, t.key_block),
        multipliers);
    weight_strip<true>(t, row, scores, gradients, multipliers);
  }
}

/// Calls `body(row, key, place)` for sixteen computed scores of existing queries at a time; their
/// biases start at `place`.
template <class Body>
[[gnu::always_inline]] inline void for_biased(const Tile& t, const Body& body) {
  for (std::int64_t row = 0; row < t.layout.queries_in(t.query_block); ++row) {
    const std::int64_t keys = t.diagonal() ? row / 16 * 16 + 16 : attention_block;
    const std::int64_t place =
        t.bias.place(t.query_block * attention_block + row, t.key_block * attention_block);
    for (std::int64_t key = 0; key < keys; key += 16) body(row, key, place + key);
  }
}

DSTRAIN_SIMD_CLONES
void bias_kernel(const Tile& t, ScoreTile& scores) {
  const float* const biases = t.bias.of(t.head);
  for_biased(t, [&](std::int64_t row, std::int64_t key, std::int64_t place) {
    float* const score = scores.row(row) + key;
    store16(score, load16(score) + load16(biases + place));
  });
}

/// Adds the gradients of scores to the gradients by distance.
DSTRAIN_SIMD_CLONES
void bias_gradient_kernel(const Tile& t, ScoreTile& gradients) {
  for_biased(t, [&](std::int64_t row, std::int64_t key, std::int64_t place) {
    float* const sum = t.space.by_distance + place;
    store16(sum, load16(sum) + load16(gradients.row(row) + key));
  });
}

/// Zeroes both for keys that their query does not see.
DSTRAIN_SIMD_CLONES
void mask_kernel(const VisibleKeys& visible, ScoreTile& scores, ScoreTile& gradients) {
  for (std::int64_t row = 0; row < attention_block; ++row) {
    for (std::int32_t key = 0; key < attention_block; ++key) {
      const bool seen = key >= visible.begin[row] && key < visible.end[row];
      scores.row(row)[key] = seen ? scores.row(row)[key] : 0.0F;
      gradients.row(row)[key] = seen ? gradients.row(row)[key] : 0.0F;
    }
  }
}

/// Rows (queries, D') of a head: their tiles, and the packed tiles.
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
/// values.
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
    multiply_tile(product, t.into_keys);
  }
}

/// query_gradient (queries, D') [+]= gradients (queries, keys) keys (keys, D'). The first block of
/// keys that the queries see overwrites.
void add_query_gradient(const Tile& t, ScoreTile& gradients) {
  const bool first = t.key_block == t.sight.first_tile(t.query_block);
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
    multiply_tile(product, first ? Into::store : Into::add);
  }
}

/// `key_gradient` and `value_gradient` are those of the tile's keys.
void run_tile(const Tile& t, float* key_gradient, float* value_gradient) {
  ScoreTile scores;
  ScoreTile gradients;
  const Space& s = t.space;
  const QueryRows queries{s.queries, s.left_queries, s.right_queries};
  const QueryRows output_gradient{s.output_gradient, s.left_output_gradient,
                                  s.right_output_gradient};
  multiply_scores(t, queries, {s.keys_transposed, s.right_keys_transposed}, scores);
  multiply_scores(t, output_gradient, {s.values_transposed, s.right_values_transposed}, gradients);
  if (t.bias.active()) bias_kernel(t, scores);
  if (t.mask.active()) {
    dropped_kernel(t, scores, gradients);
  } else {
    plain_kernel(t, scores, gradients);
  }
  if (t.visible() == Visibility::Tile::some || t.visible() == Visibility::Tile::none) {
    mask_kernel(visible_keys(t.sight, t.query_block, t.key_block), scores, gradients);
  }
  if (t.bias.active()) bias_gradient_kernel(t, gradients);
  add_key_gradient(t, scores, output_gradient, value_gradient);
  add_key_gradient(t, gradients, queries, key_gradient);
  add_query_gradient(t, gradients);
}

DSTRAIN_SIMD_CLONES
float dot(const float* a, const float* b, std::int64_t count) {
  return sum_lanes(count, [a, b](std::int64_t i) { return a[i] * b[i]; });
}

/// Packs the current tile of keys and values.
void pack_keys(const Space& space, std::int64_t columns) {
  space.right_keys.set_right(0, {space.keys, columns, 1, attention_block, columns});
  space.right_keys_transposed.set_right(
      0, {space.keys_transposed, attention_block, 1, columns, attention_block});
  space.right_values_transposed.set_right(
      0, {space.values_transposed, attention_block, 1, columns, attention_block});
}

/// One head of keys and values in one call.
template <class T>
struct Call {
  const AttentionBackwardArgs& args;
  const HeadLayout& layout;
  const AttentionTables& tables;
  const Visibility& sight;
  const DropoutMask& mask;
  const Space& space;
  KvHead at;

  /// Returns rows of a tensor (B T, H D), from a tile of queries on.
  template <class Element>
  [[nodiscard]] HeadRows<Element> queries(const TensorView& view,
                                          std::int64_t head,
                                          std::int64_t block) const {
    return head_rows<Element>(view, layout, layout.tokens, at.sequence, head)
        .from(block * attention_block);
  }
  /// Returns rows of a tensor (B S, K D) likewise.
  template <class Element>
  [[nodiscard]] HeadRows<Element> keys(const TensorView& view, std::int64_t block) const {
    return head_rows<Element>(view, layout, layout.keys, at.sequence, at.head)
        .from(block * attention_block);
  }
  void turn(float* tile,
            std::int64_t count,
            std::int64_t block,
            RotaryTable::Direction direction) const {
    tables.rotary.turn({tile, count, layout.tile_columns(), block * attention_block}, direction);
  }
  /// Offset of a block of keys among the gradients of all keys.
  [[nodiscard]] std::int64_t gradient_offset(std::int64_t block) const {
    return layout.group() > 1 ? block * layout.tile_numel() : 0;
  }
};

/// Loads the data of a block of queries.
template <class T>
void load_queries(const Call<T>& c, std::int64_t head, std::int64_t block) {
  const HeadLayout& layout = c.layout;
  const Space& space = c.space;
  const std::int64_t first = block * attention_block;
  const std::int64_t count = layout.queries_in(block);
  const std::int64_t columns = layout.tile_columns();
  float* const queries = space.queries + first * columns;
  float* const gradient = space.output_gradient + first * columns;
  float* const output = space.keys;  // free until the keys are loaded
  load_tile(c.template queries<const T>(c.args.query, head, block), count,
            log2_e / c.args.rule.divisor, queries);
  c.turn(queries, count, block, RotaryTable::Direction::forward);
  load_tile(c.template queries<const T>(c.args.output_gradient, head, block), count, 1.0F,
            gradient);
  load_tile(c.template queries<const T>(c.args.output, head, block), count, 1.0F, output);
  const TileOperand query_tile{queries, columns, 1, attention_block, columns};
  const TileOperand gradient_tile{gradient, columns, 1, attention_block, columns};
  space.left_queries.set_left(block, query_tile);
  space.right_queries.set_right(block, query_tile);
  space.left_output_gradient.set_left(block, gradient_tile);
  space.right_output_gradient.set_right(block, gradient_tile);
  const float* const logsumexp =
      floats(c.args.logsumexp) + (c.at.sequence * layout.heads + head) * layout.tokens + first;
  for (std::int64_t i = 0; i < attention_block; ++i) {
    space.logsumexp[first + i] = i < count ? logsumexp[i] * log2_e : 0.0F;
    space.delta[first + i] = dot(output + i * columns, gradient + i * columns, columns);
  }
}

template <class T>
void load_keys(const Call<T>& c, std::int64_t block) {
  const std::int64_t columns = c.layout.tile_columns();
  const std::int64_t count = c.layout.keys_in(block);
  const Space& space = c.space;
  load_tile(c.template keys<const T>(c.args.value, block), count, 1.0F, space.keys);
  transpose_tile(space.keys, attention_block, columns, space.values_transposed);
  load_tile(c.template keys<const T>(c.args.key, block), count, 1.0F, space.keys);
  c.turn(space.keys, count, block, RotaryTable::Direction::forward);
  transpose_tile(space.keys, attention_block, columns, space.keys_transposed);
  pack_keys(space, columns);
}

/// Adds the contribution of a head's queries to the gradients of a block of keys, and their own
/// gradients.
template <class T>
void run_queries(const Call<T>& c, std::int64_t head, std::int64_t key_block) {
  float* const key_gradient = c.space.key_gradient + c.gradient_offset(key_block);
  float* const value_gradient = c.space.value_gradient + c.gradient_offset(key_block);
  bool written = head % c.layout.group() > 0;
  for (std::int64_t block = 0; block < c.layout.query_tiles(); ++block) {
    if (key_block < c.sight.first_tile(block) || key_block > c.sight.last_tile(block)) continue;
    run_tile({c.layout, c.tables.bias, c.mask, c.sight, c.space, c.at.sequence, head, block,
              key_block, written ? Into::add : Into::store},
             key_gradient, value_gradient);
    written = true;
  }
  if (written) return;
  std::fill_n(key_gradient, c.layout.tile_numel(), 0.0F);
  std::fill_n(value_gradient, c.layout.tile_numel(), 0.0F);
}

template <class T>
void store_key_gradients(const Call<T>& c, std::int64_t block) {
  const std::int64_t count = c.layout.keys_in(block);
  float* const key_gradient = c.space.key_gradient + c.gradient_offset(block);
  const float* const value_gradient = c.space.value_gradient + c.gradient_offset(block);
  c.turn(key_gradient, count, block, RotaryTable::Direction::backward);
  store_tile(key_gradient, ln_2, c.template keys<T>(c.args.key_gradient, block), count);
  store_tile(value_gradient, 1.0F, c.template keys<T>(c.args.value_gradient, block), count);
}

/// Stores the gradients of the blocks of queries whose last block of keys this was.
template <class T>
void store_query_gradients(const Call<T>& c, std::int64_t head, std::int64_t key_block) {
  for (std::int64_t block = 0; block < c.layout.query_tiles(); ++block) {
    if (c.sight.last_tile(block) != key_block) continue;
    const std::int64_t count = c.layout.queries_in(block);
    float* const gradient = c.space.query_gradient + block * c.layout.tile_numel();
    c.turn(gradient, count, block, RotaryTable::Direction::backward);
    store_tile(gradient, 1.0F / c.args.rule.divisor,
               c.template queries<T>(c.args.query_gradient, head, block), count);
  }
}

/// Returns the gradients of a head's biases in this sequence, by row of their table.
template <class T>
float* bias_sums(const Call<T>& c, std::int64_t head) {
  return c.tables.rest + (c.at.sequence * c.layout.heads + head) * c.layout.buckets;
}

/// The heads of queries that share a head of keys, one after another.
template <class T>
void run_kv_head(const Call<T>& c) {
  const std::int64_t group = c.layout.group();
  for (std::int64_t i = 0; i < group; ++i) {
    const std::int64_t head = c.at.head * group + i;
    std::fill_n(c.space.by_distance, c.layout.distances(), 0.0F);
    for (std::int64_t block = 0; block < c.layout.query_tiles(); ++block) {
      load_queries(c, head, block);
    }
    for (std::int64_t key_block = 0; key_block < c.layout.key_tiles(); ++key_block) {
      load_keys(c, key_block);
      run_queries(c, head, key_block);
      if (i + 1 == group) store_key_gradients(c, key_block);
      store_query_gradients(c, head, key_block);
    }
    if (c.tables.bias.active()) {
      c.tables.bias.sum_rows(c.space.by_distance, bias_sums(c, head));
    }
  }
}

/// Sums the gradients (buckets, H) of all sequences, in order.
void add_bias_sums(const AttentionBackwardArgs& args, const HeadLayout& layout, const float* sums) {
  if (args.bias_gradient.empty()) return;
  float* const gradient = floats(args.bias_gradient);
  for (std::int64_t head = 0; head < layout.heads; ++head) {
    for (std::int64_t row = 0; row < layout.buckets; ++row) {
      float sum = 0;
      for (std::int64_t sequence = 0; sequence < layout.sequences; ++sequence) {
        sum += sums[(sequence * layout.heads + head) * layout.buckets + row];
      }
      float& target = gradient[row * layout.heads + head];
      target = args.accumulate_bias ? target + sum : sum;
    }
  }
}

}  // namespace

namespace cpu {

void attention_backward(const AttentionBackwardArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    require_key_counts(args.key_count, args.sizes);
    require_first_keys(args.first_key);
    const HeadLayout layout = attention_layout(args);
    const AttentionTables tables(args, layout, false);
    float* const slots = tables.rest + round_up(layout.bias_sums(), 16);
    with_element_type(args.query.dtype(), [&](auto element) {
      for_kv_heads(layout, [&](const KvHead& head) {
        float* const slot = slots + head.slot * backward_slot_numel(layout);
        const Visibility sight(args, head.sequence);
        const DropoutMask mask(args.dropout);
        const Space space = cut_space(slot, layout);
        run_kv_head(Call<decltype(element)>{args, layout, tables, sight, mask, space, head});
      });
    });
    add_bias_sums(args, layout, tables.rest);
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
