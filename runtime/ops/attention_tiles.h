#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/base/parallel_for.h"
#include "runtime/ops/attention_layout.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/tile_product.h"

namespace dstrain::ops {

/// Rows or columns of a tile on the diagonal that share one bound of what is visible.
inline constexpr std::int64_t attention_strip = 16;

/// Scores, probabilities or their gradients of one tile.
struct ScoreTile {
  alignas(64) float values[attention_block * attention_block];
  [[nodiscard]] float* row(std::int64_t i) { return values + i * attention_block; }
};

/// Whether tiles that many products read are packed for them once.
inline bool packs(const HeadLayout& layout) {
  return layout.rounds && layout.tile_columns() <= packed_edge && rounds_products();
}

/// The layout of tensors as AttentionArgs has them.
HeadLayout attention_layout(const TensorView& qkv, const TensorView& logsumexp);

/// Some rows of a head in a tensor of T: `stride` elements apart, D columns.
template <class T>
struct HeadRows {
  T* values;
  std::int64_t stride;
  std::int64_t columns;
  [[nodiscard]] T* row(std::int64_t i) const { return values + i * stride; }
  [[nodiscard]] HeadRows from(std::int64_t i) const { return {row(i), stride, columns}; }
};

enum class Projection : std::int8_t { query, key, value };

/// Head `head` = b H + h of packed (B, T, 3C) rows.
template <class T>
HeadRows<T> head_rows(T* qkv, const HeadLayout& layout, std::int64_t head, Projection part) {
  const std::int64_t stride = 3 * layout.channels;
  const std::int64_t column =
      static_cast<std::int64_t>(part) * layout.channels + head % layout.heads * layout.head_size();
  return {qkv + head / layout.heads * layout.tokens * stride + column, stride, layout.head_size()};
}

/// The same head of (B, T, C) rows.
template <class T>
HeadRows<T> head_rows(T* values, const HeadLayout& layout, std::int64_t head) {
  return {values + head / layout.heads * layout.tokens * layout.channels +
              head % layout.heads * layout.head_size(),
          layout.channels, layout.head_size()};
}

/// tile (64, D') = factor times the first `count` rows, with zeros around them.
template <class T>
void load_tile(const HeadRows<const T>& rows, std::int64_t count, float factor, float* tile);

/// The first `count` rows = factor times tile (64, D').
template <class T>
void store_tile(const float* tile, float factor, const HeadRows<T>& rows, std::int64_t count);

/// Packed operands, `packed_words` each, in memory of a slot; without memory nothing is packed, and
/// products pack for themselves.
class PackedTiles {
 public:
  PackedTiles() = default;
  /// Uses `memory` if the layout packs.
  PackedTiles(float* memory, const HeadLayout& layout)
      : words_(packs(layout) ? reinterpret_cast<std::uint32_t*>(memory) : nullptr) {}
  void set_left(std::int64_t tile, const TileOperand& a) const {
    if (words_ != nullptr) pack_left(a, words_ + tile * packed_words);
  }
  void set_right(std::int64_t tile, const TileOperand& b) const {
    if (words_ != nullptr) pack_right(b, words_ + tile * packed_words);
  }
  /// A left operand from `row` on.
  [[nodiscard]] const std::uint32_t* left(std::int64_t tile, std::int64_t row = 0) const {
    return at(tile, row * packed_edge / 2);
  }
  /// A right operand from `row` and `column` on; null where rows do not begin there.
  [[nodiscard]] const std::uint32_t* right(std::int64_t tile,
                                           std::int64_t row = 0,
                                           std::int64_t column = 0) const {
    return row % 32 != 0 ? nullptr : at(tile, row / 2 * packed_edge + column);
  }

 private:
  [[nodiscard]] const std::uint32_t* at(std::int64_t tile, std::int64_t words) const {
    return words_ == nullptr ? nullptr : words_ + tile * packed_words + words;
  }
  std::uint32_t* words_ = nullptr;
};

/// to (columns, rows) = from (rows, columns), both dense; multiples of 4.
void transpose_tile(const float* from, std::int64_t rows, std::int64_t columns, float* to);

/// The dropout group of (head, query) and tile `key_tile`; rows are padded to whole tiles.
inline std::int64_t score_dropout_group(const HeadLayout& layout,
                                        std::int64_t head,
                                        std::int64_t query,
                                        std::int64_t key_tile) {
  return (head % layout.heads * layout.tokens + query) * layout.tiles() + key_tile;
}

/// Calls `body(head, slot)` for every head, the heads of a slot one after another on one thread, so
/// that a thread's tiles stay in its cache.
template <class Body>
void for_heads(const HeadLayout& layout, const Body& body) {
  const std::int64_t heads = layout.sequences * layout.heads;
  const std::int64_t slots = std::min<std::int64_t>(layout.slots(), compute_threads());
  parallel_for(slots, [&](std::int64_t slot) {
    const TileProductScope scope;
    for (std::int64_t head = slot * heads / slots; head < (slot + 1) * heads / slots; ++head) {
      body(head, slot);
    }
  });
}

}  // namespace dstrain::ops
