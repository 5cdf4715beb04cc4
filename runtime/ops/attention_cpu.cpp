#include <cmath>
#include <limits>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/attention_tiles.h"
#include "runtime/ops/cached_attention_cpu.h"
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
  alignas(64) float factors[attention_block];  ///< for the sums before the last tile
};

/// Memory of one thread, cut from its slot of forward_slot_numel() floats.
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
  const std::int64_t head_numel = layout.key_tiles() * layout.tile_numel();
  const std::int64_t packed_numel = layout.key_tiles() * packed_words;
  float* const packed = slot + 2 * head_numel + 2 * layout.tile_numel();
  return {.keys = slot,
          .values = slot + head_numel,
          .queries = slot + 2 * head_numel,
          .outputs = slot + 2 * head_numel + layout.tile_numel(),
          .left_keys = {packed, layout},
          .left_values = {packed + packed_numel, layout},
          .right_queries = {packed + 2 * packed_numel, layout}};
}

/// Sets scores of keys after their query to the lowest number, whose power of two is 0.
[[gnu::always_inline]] inline void mask_strip(float* scores) {
  for (std::int64_t key = 0; key < attention_strip; ++key) {
    for (std::int64_t query = 0; query < attention_strip; ++query) {
      float& score = scores[key * attention_block + query];
      score = query < key ? std::numeric_limits<float>::lowest() : score;
    }
  }
}

/// Turns scores into weights 2^(score - largest) and updates the running maximum and sum. On the
/// diagonal, skips strips (16 x 16) below it.
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

/// Divides the columns of outputs (D', 64) by their sums.
DSTRAIN_SIMD_CLONES
void divide_kernel(float* outputs, const float* sums, std::int64_t rows) {
  float inverse[attention_block];
  for (std::int64_t i = 0; i < attention_block; ++i) inverse[i] = 1.0F / sums[i];
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < attention_block; ++i)
      outputs[row * attention_block + i] *= inverse[i];
  }
}

/// Sets scores of keys that their query does not see to the lowest number. If a query sees nothing
/// of a tile, its weights vanish once it has seen some key.
DSTRAIN_SIMD_CLONES
void mask_kernel(ScoreTile& tile, const VisibleKeys& visible) {
  for (std::int32_t key = 0; key < attention_block; ++key) {
    float* const scores = tile.row(key);
    for (std::int64_t query = 0; query < attention_block; ++query) {
      const bool seen = key >= visible.begin[query] && key < visible.end[query];
      scores[query] = seen ? scores[query] : std::numeric_limits<float>::lowest();
    }
  }
}

/// One head of queries.
struct QueryHead {
  const HeadLayout& layout;
  const AttentionRule& rule;
  const Visibility& sight;
  const AttentionTables& tables;
  const DropoutMask& mask;
  Space space;
  std::int64_t sequence;
  std::int64_t head;
  std::int64_t base = 0;   ///< the first tile of keys that `space` holds
  bool turns_keys = true;  ///< keys from a cache are rotated already

  [[nodiscard]] std::int64_t place(std::int64_t key_tile) const { return key_tile - base; }
};

/// One tile of its queries.
struct QueryBlock : QueryHead {
  std::int64_t block;
};

/// One tile of the keys that the queries see.
struct KeyTile {
  std::int64_t index;
  Visibility::Tile visible;
  [[nodiscard]] bool diagonal() const { return visible == Visibility::Tile::diagonal; }
};

DSTRAIN_SIMD_CLONES
void draw_kernel(const QueryBlock& q, std::int64_t key_tile, ScoreTile& multipliers) {
  for (std::int64_t i = 0; i < attention_block; ++i) {
    dropout_multipliers(
        q.mask, q.sequence,
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

/// scores (keys, queries) = keys (keys, D') queries (D', queries); on the diagonal, only above it.
void multiply_scores(const QueryBlock& q, const KeyTile& tile, ScoreTile& scores) {
  const std::int64_t columns = q.layout.tile_columns();
  const std::int64_t rows = tile.diagonal() ? attention_strip : attention_block;
  const std::int64_t place = q.place(tile.index);
  const float* const keys = q.space.keys + place * q.layout.tile_numel();
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
                   .a_packed = q.space.left_keys.left(place, key),
                   .b_packed = q.space.right_queries.right(0, 0, key)});
  }
}

/// On the diagonal, skips strips (16 x 16) below it.
DSTRAIN_SIMD_CLONES
void bias_kernel(const QueryBlock& q, const KeyTile& tile, ScoreTile& scores) {
  for (std::int64_t key = 0; key < attention_block; ++key) {
    const std::int64_t first = tile.diagonal() ? key / attention_strip * attention_strip : 0;
    const std::int64_t place =
        q.tables.bias.place(tile.index * attention_block + key, q.block * attention_block);
    const float* const bias = q.tables.bias.of(q.head) + place;
    for (std::int64_t query = first; query < attention_block; query += 16) {
      float* const score = scores.row(key) + query;
      store16(score, load16(score) + load16(bias + query));
    }
  }
}

/// outputs (D', queries) = outputs diag(factors) + values^T (D', keys) weights (keys, queries).
void add_values(
    const QueryBlock& q, const KeyTile& tile, ScoreTile& weights, const float* factors, Into into) {
  const std::int64_t columns = tile.diagonal() ? attention_strip : attention_block;
  const std::int64_t place = q.place(tile.index);
  for (std::int64_t query = 0; query < attention_block; query += columns) {
    const TileProduct product{.c = q.space.outputs + query,
                              .c_row = attention_block,
                              .a = q.space.values + place * q.layout.tile_numel(),
                              .a_row = 1,
                              .a_column = q.layout.tile_columns(),
                              .b = weights.values + query,
                              .b_row = attention_block,
                              .m = q.layout.tile_columns(),
                              .n = columns,
                              .k = query + columns,
                              .factors = factors + query,
                              .rounds = q.layout.rounds,
                              .a_packed = q.space.left_values.left(place)};
    multiply_tile(product, into);
  }
}

template <class T>
void load_queries(const QueryBlock& q, const HeadRows<const T>& queries) {
  const std::int64_t columns = q.layout.tile_columns();
  const std::int64_t count = q.layout.queries_in(q.block);
  load_tile(queries, count, log2_e / q.rule.divisor, q.space.outputs);
  q.tables.rotary.turn({q.space.outputs, count, columns, q.block * attention_block},
                       RotaryTable::Direction::forward);
  transpose_tile(q.space.outputs, attention_block, columns, q.space.queries);
  q.space.right_queries.set_right(0,
                                  {q.space.queries, attention_block, 1, columns, attention_block});
}

template <class T>
void store_outputs(const QueryBlock& q,
                   const RunningSoftmax& softmax,
                   const HeadRows<T>& output,
                   float* logsumexp) {
  const std::int64_t columns = q.layout.tile_columns();
  const std::int64_t count = q.layout.queries_in(q.block);
  divide_kernel(q.space.outputs, softmax.sum, columns);
  transpose_tile(q.space.outputs, columns, attention_block, q.space.queries);
  store_tile(q.space.queries, 1.0F, output, count);
  if (logsumexp == nullptr) return;
  for (std::int64_t i = 0; i < count; ++i) {
    logsumexp[i] = ln_2 * (softmax.largest[i] + std::log2(softmax.sum[i]));
  }
}

/// Visits the tiles of keys that the block sees, from first to last.
void attend(const QueryBlock& q, RunningSoftmax& softmax) {
  ScoreTile scores;
  std::fill_n(softmax.largest, attention_block, std::numeric_limits<float>::lowest());
  std::fill_n(softmax.sum, attention_block, 0.0F);
  const std::int64_t first = q.sight.first_tile(q.block);
  for (std::int64_t i = first; i <= q.sight.last_tile(q.block); ++i) {
    const KeyTile tile{i, q.sight.tile(q.block, i)};
    multiply_scores(q, tile, scores);
    if (q.tables.bias.active()) bias_kernel(q, tile, scores);
    if (tile.visible == Visibility::Tile::some || tile.visible == Visibility::Tile::none) {
      mask_kernel(scores, visible_keys(q.sight, q.block, i));
    }
    softmax_kernel(scores, tile.diagonal(), softmax);
    if (q.mask.active()) drop_weights(q, i, scores);
    add_values(q, tile, scores, softmax.factors, i == first ? Into::store : Into::scale_add);
  }
}

/// The keys and values of a head, whose tiles are loaded in order.
template <class T>
struct KeyValues {
  HeadRows<const T> keys;
  HeadRows<const T> values;
  std::int64_t ring;  ///< position p is in row p mod `ring`, which are whole tiles if it wraps
  std::int64_t loaded = 0;

  void load_until(std::int64_t tile, const QueryHead& h) {
    const HeadLayout& layout = h.layout;
    const std::int64_t columns = layout.tile_columns();
    for (; loaded <= tile; ++loaded) {
      const std::int64_t first = loaded * attention_block;
      const std::int64_t count = layout.keys_in(loaded);
      const std::int64_t place = h.place(loaded);
      float* const key_tile = h.space.keys + place * layout.tile_numel();
      float* const value_tile = h.space.values + place * layout.tile_numel();
      load_tile(keys.from(first % ring), count, 1.0F, key_tile);
      if (h.turns_keys) {
        h.tables.rotary.turn({key_tile, count, columns, first}, RotaryTable::Direction::forward);
      }
      load_tile(values.from(first % ring), count, 1.0F, value_tile);
      h.space.left_keys.set_left(place, {key_tile, columns, 1, attention_block, columns});
      h.space.left_values.set_left(place, {value_tile, 1, columns, columns, attention_block});
    }
  }
};

/// One head of queries, to keys that may have been loaded for another one.
template <class T>
void run_query_head(const QueryHead& h,
                    const HeadRows<const T>& queries,
                    const HeadRows<T>& output,
                    float* logsumexp,
                    KeyValues<T>& shared) {
  for (std::int64_t block = 0; block < h.layout.query_tiles(); ++block) {
    shared.load_until(h.sight.last_tile(block), h);
    const QueryBlock q{h, block};
    const std::int64_t first = block * attention_block;
    RunningSoftmax softmax;
    load_queries<T>(q, queries.from(first));
    attend(q, softmax);
    store_outputs<T>(q, softmax, output.from(first),
                     logsumexp == nullptr ? nullptr : logsumexp + first);
  }
}

/// The heads of queries that share a head of keys, one after another.
template <class T>
void run_kv_head(const AttentionArgs& args,
                 const HeadLayout& layout,
                 const AttentionTables& tables,
                 const KvHead& at,
                 const Space& space) {
  const DropoutMask mask(args.dropout);
  const Visibility sight(args, at.sequence);
  KeyValues<T> shared{head_rows<const T>(args.key, layout, layout.keys, at.sequence, at.head),
                      head_rows<const T>(args.value, layout, layout.keys, at.sequence, at.head),
                      layout.key_tiles() * attention_block};
  for (std::int64_t i = 0; i < layout.group(); ++i) {
    const std::int64_t head = at.head * layout.group() + i;
    const QueryHead h{layout, args.rule, sight, tables, mask, space, at.sequence, head};
    run_query_head<T>(h, head_rows<const T>(args.query, layout, layout.tokens, at.sequence, head),
                      head_rows<T>(args.output, layout, layout.tokens, at.sequence, head),
                      floats(args.logsumexp) + (at.sequence * layout.heads + head) * layout.tokens,
                      shared);
  }
}

/// The same, with the keys and values of a cache.
template <class T>
void run_cached_head(const CachedAttentionArgs& args,
                     const HeadLayout& held,
                     const CachedSequence& sequence,
                     const KvHead& at,
                     float* slot) {
  HeadLayout layout = held;
  layout.keys = sequence.past + layout.tokens;
  const DropoutMask mask(DropoutSite{});
  const Visibility sight(args.rule, layout, sequence.past);
  AttentionTables tables;
  tables.rotary = sequence.angles;
  KeyValues<T> shared{cached_rows<T>(args.cache.key, layout, sequence.slot, at.head),
                      cached_rows<T>(args.cache.value, layout, sequence.slot, at.head),
                      args.cache.rows(), sight.first_tile(0)};
  const std::int64_t base = shared.loaded;
  const Space space = cut_space(slot, held);
  for (std::int64_t i = 0; i < layout.group(); ++i) {
    const std::int64_t head = at.head * layout.group() + i;
    const QueryHead h{layout, args.rule,   sight, tables, mask,
                      space,  at.sequence, head,  base,   /*turns_keys=*/false};
    run_query_head<T>(h, head_rows<const T>(args.query, layout, layout.tokens, at.sequence, head),
                      head_rows<T>(args.output, layout, layout.tokens, at.sequence, head), nullptr,
                      shared);
  }
}

}  // namespace

namespace cpu {

void attention_forward(const AttentionArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    require_key_counts(args.key_count, args.sizes);
    require_first_keys(args.first_key);
    const HeadLayout layout = attention_layout(args);
    const AttentionTables tables(args, layout, true);
    with_element_type(args.query.dtype(), [&](auto element) {
      for_kv_heads(layout, [&](const KvHead& head) {
        float* const slot = tables.rest + head.slot * forward_slot_numel(layout);
        run_kv_head<decltype(element)>(args, layout, tables, head, cut_space(slot, layout));
      });
    });
  });
}

}  // namespace cpu

void run_cached_tiles(const CachedAttentionArgs& args,
                      const HeadLayout& held,
                      const CachedSequence& sequence,
                      const KvHead& at,
                      float* slot) {
  with_element_type(args.query.dtype(), [&](auto element) {
    run_cached_head<decltype(element)>(args, held, sequence, at, slot);
  });
}

}  // namespace dstrain::ops
