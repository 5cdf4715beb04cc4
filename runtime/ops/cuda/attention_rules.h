#pragma once
#include <array>
#include <cstdint>

#include "runtime/ops/cuda/attention_rows.h"
#include "runtime/ops/fast_exp.h"

namespace dstrain::ops::gpu {

// What all attention kernels share: which keys queries see, biases by distance, and dropout.

/// Which keys queries see.
struct Sight {
  template <class Args>
  explicit Sight(const Args& args)
      : causal(args.rule.causal),
        window(static_cast<std::int32_t>(args.rule.window)),
        tokens(static_cast<std::int32_t>(args.sizes.tokens)),
        keys(static_cast<std::int32_t>(args.sizes.keys)),
        key_count(elements<const std::int32_t>(args.key_count)),
        first_key(elements<const std::int32_t>(args.first_key)) {}
  bool causal;
  std::int32_t window;
  std::int32_t tokens;
  std::int32_t keys;
  const std::int32_t* key_count;  ///< may be null, like the next
  const std::int32_t* first_key;

  struct Range {
    std::int32_t begin;
    std::int32_t end;
    template <class Key>
    DSTRAIN_DEVICE bool contains(Key key) const {
      return key >= begin && key < end;
    }
    /// Whether it contains any of `count` keys from `key` on.
    DSTRAIN_DEVICE bool meets(std::int64_t key, int count) const {
      return begin < key + count && end > key;
    }
    /// The same keys, relative to another first key.
    DSTRAIN_DEVICE Range from(std::int64_t key) const {
      return {begin - static_cast<std::int32_t>(key), end - static_cast<std::int32_t>(key)};
    }
  };
  /// A query past the last one sees no key.
  DSTRAIN_DEVICE Range of(std::int64_t sequence, std::int64_t query) const {
    if (query >= tokens) return {0, 0};
    const auto behind = static_cast<std::int32_t>(query) + 1;
    Range range{0, key_count == nullptr ? keys : key_count[sequence]};
    if (causal && behind < range.end) range.end = behind;
    if (window > 0 && behind > window) range.begin = behind - window;
    if (first_key == nullptr) return range;
    const std::int32_t first = first_key[sequence * tokens + query];
    if (first > range.begin) range.begin = first;
    return range;
  }
  /// Returns a range with all keys that any of `count` queries from `query` on sees. Both bounds
  /// grow with the query.
  DSTRAIN_DEVICE Range of_tile(std::int64_t sequence, std::int64_t query, int count) const {
    const std::int64_t behind = query + count;
    const std::int64_t last = (behind < tokens ? behind : std::int64_t{tokens}) - 1;
    return {of(sequence, query).begin, of(sequence, last).end};
  }
  /// Whether `count` queries from `query` on exist and each sees `keys_seen` keys from `key` on.
  DSTRAIN_DEVICE bool all_see(
      std::int64_t sequence, std::int64_t query, int count, std::int64_t key, int keys_seen) const {
    if (query + count > tokens) return false;
    return of(sequence, query + count - 1).begin <= key &&
           of(sequence, query).end >= key + keys_seen;
  }
};

/// Attention's bias by distance. The host computes the distances at which rows of the table begin,
/// so that they equal the CPU's.
struct DistanceBias {
  static constexpr std::int64_t rows_most = 128;
  template <class Args>
  explicit DistanceBias(const Args& args)
      : buckets(args.rule.buckets.count), both_ways(args.rule.buckets.both_ways) {
    find_starts(args.rule.buckets);
  }
  std::int64_t buckets;  ///< 0: no bias
  bool both_ways;
  std::int32_t rows = 0;                         ///< per direction
  std::array<std::int32_t, rows_most> starts{};  ///< the least distance of each row

  void find_starts(const RelativeBuckets& of);
  DSTRAIN_DEVICE bool active() const { return buckets > 0; }
  /// The row of the table for key position - query position = `distance`.
  DSTRAIN_DEVICE std::int64_t row_of(std::int64_t distance) const {
    const bool behind = distance > 0;
    std::int64_t away = behind ? distance : -distance;
    if (behind && !both_ways) away = 0;
    std::int32_t row = 0;
    while (row + 1 < rows && starts[static_cast<std::size_t>(row + 1)] <= away) ++row;
    return row + (behind && both_ways ? rows : 0);
  }
};

/// Loads the biases of a tile of scores by distance, times log2(e). The score in row r and column c
/// has the bias at c - r + rows - 1.
template <int threads, int rows, class T, std::size_t size>
DSTRAIN_DEVICE void load_biases(const DistanceBias& bias,
                                const T* table,
                                std::int64_t heads,
                                std::int64_t head,
                                std::int64_t key_behind_query,
                                float (&biases)[size]) {
  if (!bias.active()) return;
  for (int i = thread(); i < static_cast<int>(size) - 1; i += threads) {
    const std::int64_t row = bias.row_of(key_behind_query + i - (rows - 1));
    biases[i] = to_float(table[row * heads + head]) * log2_e;
  }
}

/// The dropout group of a query and a key tile.
DSTRAIN_DEVICE std::int64_t dropout_group(const AttentionSizes& sizes,
                                          std::int64_t head,
                                          std::int64_t query,
                                          std::int64_t tile) {
  const std::int64_t tiles = (sizes.keys + key_tile - 1) / key_tile;
  return (head * sizes.tokens + query) * tiles + tile;
}

}  // namespace dstrain::ops::gpu
