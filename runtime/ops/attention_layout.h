#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/ops/cached_attention.h"
#include "runtime/ops/tile_product.h"

namespace dstrain::ops {

// A head's rows are copied to dense f32 tiles before they are multiplied: rows (tokens) padded with
// zeros to whole tiles, columns to D' = D rounded up to 16. Keys after the last query are masked
// like all later keys, and padded queries have no gradient, so that kernels see only whole tiles.

/// Queries and keys per tile.
inline constexpr std::int64_t attention_block = 64;

/// Most heads in progress at once; each has a slot of the workspace.
inline constexpr std::int64_t attention_slots_max = 64;

/// The sizes of one call.
struct HeadLayout : AttentionSizes {
  bool rounds = false;  ///< products may round their operands to bf16, because the tensors are bf16
  std::int64_t buckets = 0;  ///< rows of the table of biases; 0: no biases
  [[nodiscard]] std::int64_t tile_columns() const { return (head_size + 15) / 16 * 16; }
  [[nodiscard]] std::int64_t tile_numel() const { return attention_block * tile_columns(); }
  static std::int64_t tiles_of(std::int64_t rows) {
    return (rows + attention_block - 1) / attention_block;
  }
  [[nodiscard]] std::int64_t query_tiles() const { return tiles_of(tokens); }
  [[nodiscard]] std::int64_t key_tiles() const { return tiles_of(keys); }
  [[nodiscard]] std::int64_t queries_in(std::int64_t tile) const {
    return std::min(attention_block, tokens - tile * attention_block);
  }
  [[nodiscard]] std::int64_t keys_in(std::int64_t tile) const {
    return std::min(attention_block, keys - tile * attention_block);
  }
  [[nodiscard]] std::int64_t slots() const {
    return std::min(sequences * kv_heads, attention_slots_max);
  }
  /// Rows of the table of a rotary embedding.
  [[nodiscard]] std::int64_t positions() const { return std::max(tokens, keys); }
  /// The number of distances between queries and keys of whole tiles; 0 without biases.
  [[nodiscard]] std::int64_t distances() const {
    return buckets > 0 ? (query_tiles() + key_tiles()) * attention_block : 0;
  }
  /// Floats of the gradients of biases, by sequence and head.
  [[nodiscard]] std::int64_t bias_sums() const { return sequences * heads * buckets; }
};

/// Floats of a slot in forward: keys and values of a head, the queries and outputs of a tile, and
/// the packed copies.
inline std::int64_t forward_slot_numel(const HeadLayout& layout) {
  const std::int64_t tiles = layout.key_tiles();
  return (2 * tiles + 2) * layout.tile_numel() + (2 * tiles + 1) * packed_words;
}

/// Whether queries to a cache are multiplied one by one, not in tiles.
inline bool attends_one_by_one(const AttentionSizes& sizes, const AttentionRule& rule) {
  return sizes.tokens <= cached_few_queries || !rule.causal || rule.buckets.active();
}

/// Floats of a slot in backward: three tensors of a head of queries and two values per query; five
/// tiles or, if heads share keys, three and the gradients of all keys and values; the packed
/// copies; with biases, the gradient by distance.
inline std::int64_t backward_slot_numel(const HeadLayout& layout) {
  const std::int64_t tiles = layout.query_tiles();
  const std::int64_t gradients = layout.group() > 1 ? 2 * layout.key_tiles() : 2;
  return (3 * tiles + 3 + gradients) * layout.tile_numel() + 2 * tiles * attention_block +
         (4 * tiles + 3) * packed_words + layout.distances();
}

/// Returns the keys of a cache whose tiles a slot of the workspace holds at once: those that a
/// call's queries see, and the rest of the first one's tile.
inline std::int64_t cached_tile_keys(const AttentionSizes& sizes, const AttentionRule& rule) {
  if (rule.window == 0) return sizes.keys;
  return std::min(sizes.keys, rule.window - 1 + sizes.tokens) + attention_block - 1;
}

/// The workspace of attention to a cache: offsets in floats.
struct CachedWorkspace {
  /// `few`: queries are multiplied one by one.
  CachedWorkspace(const HeadLayout& layout, const AttentionRule& rule, bool few)
      : bias_rows(round_up(layout.sequences * layout.tokens * rule.rotary.dims, 16)),
        slots(bias_rows + (layout.buckets > 0 ? round_up(layout.keys, 16) : 0)),
        slot_numel(few ? few_slot_numel(layout) : forward_slot_numel(layout)),
        numel(slots + layout.slots() * slot_numel) {}
  /// Two tiles and, for each query, itself, its output, and its largest score and sum.
  static std::int64_t few_slot_numel(const HeadLayout& layout) {
    const std::int64_t rows = layout.group() * layout.tokens;
    return 2 * layout.tile_numel() + 2 * rows * layout.tile_columns() + round_up(2 * rows, 16);
  }
  std::int64_t angles = 0;
  std::int64_t bias_rows;
  std::int64_t slots;
  std::int64_t slot_numel;
  std::int64_t numel;
};

}  // namespace dstrain::ops
