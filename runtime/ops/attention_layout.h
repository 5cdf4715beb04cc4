#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/ops/attention.h"
#include "runtime/ops/tile_product.h"

namespace dstrain::ops {

// A head's rows are copied to dense f32 tiles before they are multiplied: rows (tokens) padded with
// zeros to whole tiles, columns to D' = D rounded up to 16. Keys behind the last query are masked
// like all later ones, and padded queries have no gradient, so that kernels see whole tiles only.

/// Queries and keys per tile.
inline constexpr std::int64_t attention_block = 64;

/// Heads that may be at work at once: each has a slot of the workspace.
inline constexpr std::int64_t attention_slots_max = 64;

/// The sizes of one call.
struct HeadLayout : AttentionSizes {
  bool rounds = false;  ///< products may round their operands to bf16, as the tensors are
  [[nodiscard]] std::int64_t head_size() const { return channels / heads; }
  [[nodiscard]] std::int64_t tile_columns() const { return (head_size() + 15) / 16 * 16; }
  [[nodiscard]] std::int64_t tiles() const {
    return (tokens + attention_block - 1) / attention_block;
  }
  [[nodiscard]] std::int64_t tile_numel() const { return attention_block * tile_columns(); }
  [[nodiscard]] std::int64_t queries_in(std::int64_t tile) const {
    return std::min(attention_block, tokens - tile * attention_block);
  }
  [[nodiscard]] std::int64_t slots() const {
    return std::min(sequences * heads, attention_slots_max);
  }
};

/// Floats of a slot in forward: keys and values of a head, the queries and outputs of a tile, and
/// what is packed of them.
inline std::int64_t forward_slot_numel(const HeadLayout& layout) {
  return (2 * layout.tiles() + 2) * layout.tile_numel() + (2 * layout.tiles() + 1) * packed_words;
}

/// Floats of a slot in backward: three tensors of a head and two values per query, five tiles, and
/// what is packed of them.
inline std::int64_t backward_slot_numel(const HeadLayout& layout) {
  return (3 * layout.tiles() + 5) * layout.tile_numel() + 2 * layout.tiles() * attention_block +
         (4 * layout.tiles() + 3) * packed_words;
}

}  // namespace dstrain::ops
