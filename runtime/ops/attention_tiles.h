#pragma once
#include <cstdint>

#include "runtime/ops/dropout_mask.h"
#include "runtime/ops/tile_product.h"

namespace dstrain::ops {

/// Queries and keys per tile.
inline constexpr std::int64_t attention_block = 64;

/// Scores, probabilities or their gradients of one tile; rows are queries.
struct ScoreTile {
  float values[attention_block * attention_block];
  [[nodiscard]] float* row(std::int64_t i) { return values + i * attention_block; }
};

/// The sizes of one call, and where the parts of a head lie.
struct HeadLayout {
  std::int64_t sequences;  ///< B
  std::int64_t tokens;     ///< T
  std::int64_t heads;      ///< H
  std::int64_t channels;   ///< C
  [[nodiscard]] std::int64_t head_size() const { return channels / heads; }
  [[nodiscard]] std::int64_t tiles() const {
    return (tokens + attention_block - 1) / attention_block;
  }
};

/// Rows of a matrix in memory: `stride` elements apart.
struct RowBlock {
  float* values;
  std::int64_t stride;
  [[nodiscard]] float* row(std::int64_t i) const { return values + i * stride; }
  [[nodiscard]] RowBlock from(std::int64_t i) const { return {row(i), stride}; }
};

/// Query, key, value (or their gradients) of one head: (T, D) each.
struct HeadRows {
  RowBlock query;
  RowBlock key;
  RowBlock value;
};

/// Head `head` = b H + h of packed (B, T, 3C) rows.
HeadRows head_rows(float* qkv, const HeadLayout& layout, std::int64_t head);

/// The same head of (B, T, C) rows.
RowBlock head_columns(float* values, const HeadLayout& layout, std::int64_t head);

/// transposed (D, T) = rows (T, D).
void transpose_head(const RowBlock& rows, const HeadLayout& layout, float* transposed);

/// tile = query rows times transposed keys: (queries, keys) from their first rows.
struct ScoreProduct {
  RowBlock rows;            ///< (queries, D)
  const float* transposed;  ///< (D, T), moved to the first key
  std::int64_t queries;
  std::int64_t keys;
};
void multiply_scores(const ScoreProduct& product, const HeadLayout& layout, ScoreTile& tile);

/// Keys that query `query` of a tile may see: all, up to its own on the diagonal.
inline std::int64_t visible_keys(bool diagonal, std::int64_t query, std::int64_t keys) {
  return diagonal ? query + 1 : keys;
}

/// The dropout group of (head, query) and tile `key_tile`; rows are padded to whole tiles.
inline std::int64_t score_dropout_group(const HeadLayout& layout,
                                        std::int64_t head,
                                        std::int64_t query,
                                        std::int64_t key_tile) {
  return (head % layout.heads * layout.tokens + query) * layout.tiles() + key_tile;
}

}  // namespace dstrain::ops
