#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/numeric/parallel_for.h"
#include "runtime/ops/attention_layout.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/relative_bias_cpu.h"
#include "runtime/ops/rotary_cpu.h"
#include "runtime/ops/tile_product.h"

namespace dstrain::ops {

/// Rows or columns of a diagonal tile that share one bound of visibility.
inline constexpr std::int64_t attention_strip = 16;

/// Scores, probabilities or their gradients of one tile.
struct ScoreTile {
  alignas(64) float values[attention_block * attention_block];
  [[nodiscard]] float* row(std::int64_t i) { return values + i * attention_block; }
};

/// Whether tiles that many products read are packed once for all of them.
inline bool packs(const HeadLayout& layout) {
  return layout.rounds && layout.tile_columns() <= packed_edge && rounds_products();
}

/// Returns the layout of a call. Products may round operands that are bf16 anyway.
template <class Args>
HeadLayout attention_layout(const Args& args) {
  return {args.sizes, args.query.dtype() == DType::bf16, args.rule.buckets.count};
}

/// The filled tables that all heads of a call read, and the rest of the workspace.
struct AttentionTables {
  AttentionTables() = default;
  template <class Args>
  AttentionTables(const Args& args, const HeadLayout& layout, bool rows_are_keys) {
    const std::int64_t queries = layout.query_tiles() * attention_block;
    const std::int64_t keys = layout.key_tiles() * attention_block;
    const auto scores = rows_are_keys ? RelativeBias::Scores{keys, queries, true}
                                      : RelativeBias::Scores{queries, keys, false};
    const Rotary& turns = args.rule.rotary;
    float* memory = floats(args.workspace);
    rotary = {turns, memory};
    rotary.fill(turns, layout.positions());
    memory += round_up(RotaryTable::numel(turns, layout.positions()), 16);
    bias = {args.rule.buckets, scores, memory};
    bias.fill(args.bias, log2_e);
    rest = memory + layout.heads * layout.distances();
  }
  RotaryTable rotary;
  RelativeBias bias;  ///< times log2(e)
  float* rest = nullptr;
};

/// Some rows of a head in a tensor, `stride` elements apart, with D columns.
template <class T>
struct HeadRows {
  T* values;
  std::int64_t stride;
  std::int64_t columns;
  [[nodiscard]] T* row(std::int64_t i) const { return values + i * stride; }
  [[nodiscard]] HeadRows from(std::int64_t i) const { return {row(i), stride, columns}; }
};

/// Head `head` of sequence `sequence` in a matrix with `rows` rows per sequence.
template <class T>
HeadRows<T> head_rows(const TensorView& view,
                      const HeadLayout& layout,
                      std::int64_t rows,
                      std::int64_t sequence,
                      std::int64_t head) {
  const std::int64_t stride = view.row_stride();
  return {
      elements<std::remove_const_t<T>>(view) + sequence * rows * stride + head * layout.head_size,
      stride, layout.head_size};
}

/// Returns the number of valid keys of a sequence.
inline std::int64_t key_count(const TensorView& counts, std::int64_t sequence, std::int64_t keys) {
  if (counts.empty()) return keys;
  return host_access(counts).as<const std::int32_t>()[static_cast<std::size_t>(sequence)];
}
/// Throws Error{internal} if a count is not in [1, S].
void require_key_counts(const TensorView& counts, const AttentionSizes& sizes);
/// Throws Error{internal} if a first key comes after its query, or decreases along the sequence.
void require_first_keys(const TensorView& first_keys);

/// The keys that queries of one sequence see.
class Visibility {
 public:
  /// How much of a tile's keys its queries see. `diagonal`: each query sees keys up to itself.
  enum class Tile : std::int8_t { none, all, diagonal, some };
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };

  template <class Args>
  Visibility(const Args& args, std::int64_t sequence)
      : causal_(args.rule.causal),
        window_(args.rule.window),
        tokens_(args.sizes.tokens),
        keys_(args.sizes.keys),
        count_(key_count(args.key_count, sequence, keys_)),
        first_keys_(args.first_key.empty()
                        ? nullptr
                        : elements<const std::int32_t>(args.first_key) + sequence * tokens_) {}
  /// Queries at positions from `past` on, to a cache that has the `sizes.keys` first positions.
  Visibility(const AttentionRule& rule, const AttentionSizes& sizes, std::int64_t past)
      : causal_(rule.causal),
        window_(rule.window),
        tokens_(sizes.tokens),
        keys_(sizes.keys),
        count_(sizes.keys),
        first_keys_(nullptr),
        past_(past) {}

  [[nodiscard]] Range of(std::int64_t query) const {
    const std::int64_t behind = past_ + query + 1;
    const std::int64_t end = causal_ ? std::min(behind, count_) : count_;
    const std::int64_t begin = window_ > 0 ? std::max<std::int64_t>(0, behind - window_) : 0;
    if (first_keys_ == nullptr) return {begin, end};
    return {std::max<std::int64_t>(begin, first_keys_[std::min(query, tokens_ - 1)]), end};
  }
  [[nodiscard]] Tile tile(std::int64_t query_tile, std::int64_t key_tile) const;
  /// The first to the last tile of keys of which a tile of queries sees any; at least one.
  [[nodiscard]] std::int64_t first_tile(std::int64_t query_tile) const;
  [[nodiscard]] std::int64_t last_tile(std::int64_t query_tile) const;

 private:
  [[nodiscard]] std::int64_t last_query(std::int64_t tile) const {
    return std::min((tile + 1) * attention_block, tokens_) - 1;
  }
  bool causal_;
  std::int64_t window_;
  std::int64_t tokens_;
  std::int64_t keys_;
  std::int64_t count_;
  const std::int32_t* first_keys_;  ///< by query, or null
  std::int64_t past_ = 0;           ///< position of query 0
};

/// The keys that a tile's queries see, by query: keys [begin, end) of the tile.
struct VisibleKeys {
  alignas(64) std::int32_t begin[attention_block];
  alignas(64) std::int32_t end[attention_block];
};
VisibleKeys visible_keys(const Visibility& sight, std::int64_t query_tile, std::int64_t key_tile);

/// tile (64, D') = factor times the first `count` rows, with zeros around them.
template <class T>
void load_tile(const HeadRows<const T>& rows, std::int64_t count, float factor, float* tile);

/// Does the same without zeros below, for rows that nothing else reads.
template <class T>
void load_rows(const HeadRows<const T>& rows, std::int64_t count, float* tile);

/// The first `count` rows = factor times tile (64, D').
template <class T>
void store_tile(const float* tile, float factor, const HeadRows<T>& rows, std::int64_t count);

/// Packed operands of `packed_words` each, in a slot's memory. Without memory nothing is packed,
/// and products pack for themselves.
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
  /// A right operand from `row` and `column` on; null if no packed operand starts at that row.
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
  return (head * layout.tokens + query) * layout.key_tiles() + key_tile;
}

/// A head of keys and values, and its slot of the workspace.
struct KvHead {
  std::int64_t sequence;
  std::int64_t head;
  std::int64_t slot;
};

/// Calls `body(kv_head)` for every head of keys. One thread processes the heads of a slot in turn,
/// so that its tiles stay in its cache.
template <class Body>
void for_kv_heads(const HeadLayout& layout, const Body& body) {
  const std::int64_t heads = layout.sequences * layout.kv_heads;
  const std::int64_t slots = std::min<std::int64_t>(layout.slots(), compute_threads());
  parallel_for(slots, [&](std::int64_t slot) {
    const TileProductScope scope;
    for (std::int64_t head = slot * heads / slots; head < (slot + 1) * heads / slots; ++head) {
      body(KvHead{head / layout.kv_heads, head % layout.kv_heads, slot});
    }
  });
}

}  // namespace dstrain::ops
