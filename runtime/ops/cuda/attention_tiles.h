#pragma once
#include <algorithm>
#include <array>
#include <limits>

#include "runtime/ops/attention.h"
#include "runtime/ops/cuda/dropout_mask.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/sin_cos.h"

namespace dstrain::ops::gpu {

// A block of 256 threads works on tiles of queries by 64 keys: thread (x, y), both in [0, 16), has
// the rows y, y + 16 ... and the columns x, x + 16 ... of whatever the block computes. The columns
// of a row of scores are so those that one draw of dropout is for. Rows of tiles are padded by four
// floats, so that those of neighbouring threads lie in different banks.

inline constexpr int attention_threads = 256;
inline constexpr int key_tile = 64;
inline constexpr int padding = 4;
inline constexpr std::int64_t head_size_most = 256;

/// Blocks that a multiprocessor is to have room for, with tiles of so many columns.
constexpr int blocks_at_once(int columns) {
  return columns <= 64 ? 2 : 1;
}

DSTRAIN_DEVICE int tile_x() {
  return thread() % 16;
}
DSTRAIN_DEVICE int tile_y() {
  return thread() / 16;
}

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
  const std::int32_t* key_count;  ///< or null, as the next one
  const std::int32_t* first_key;

  struct Range {
    std::int32_t begin;
    std::int32_t end;
    DSTRAIN_DEVICE bool contains(std::int64_t key) const { return key >= begin && key < end; }
  };
  /// A query behind the last one sees nothing.
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
  /// All keys that some of `count` queries from `query` on see lie there; both bounds grow with the
  /// query.
  DSTRAIN_DEVICE Range of_tile(std::int64_t sequence, std::int64_t query, int count) const {
    const std::int64_t behind = query + count;
    const std::int64_t last = (behind < tokens ? behind : std::int64_t{tokens}) - 1;
    return {of(sequence, query).begin, of(sequence, last).end};
  }
};

/// Attention's bias by distance. Where the rows of its table begin is found on the host, so that
/// they are the CPU's.
struct DistanceBias {
  static constexpr std::int64_t rows_most = 128;
  template <class Args>
  explicit DistanceBias(const Args& args)
      : buckets(args.rule.buckets.count), both_ways(args.rule.buckets.both_ways) {
    find_starts(args.rule.buckets);
  }
  std::int64_t buckets;  ///< 0: there is none
  bool both_ways;
  std::int32_t rows = 0;                         ///< of one way
  std::array<std::int32_t, rows_most> starts{};  ///< least distance of each

  void find_starts(const RelativeBuckets& of);
  DSTRAIN_DEVICE bool active() const { return buckets > 0; }
  /// The row of the table for a key that lies so far behind its query.
  DSTRAIN_DEVICE std::int64_t row_of(std::int64_t distance) const {
    const bool behind = distance > 0;
    std::int64_t away = behind ? distance : -distance;
    if (behind && !both_ways) away = 0;
    std::int32_t row = 0;
    while (row + 1 < rows && starts[static_cast<std::size_t>(row + 1)] <= away) ++row;
    return row + (behind && both_ways ? rows : 0);
  }
};

/// One head in a tensor whose rows may be strided.
template <class T>
struct HeadMatrix {
  T* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;  ///< of a sequence
  /// Row `row` of the head `head` of a sequence.
  DSTRAIN_DEVICE T* at(std::int64_t sequence,
                       std::int64_t head,
                       std::int64_t row,
                       std::int64_t head_size) const {
    return data + (sequence * rows + row) * stride + head * head_size;
  }
};

template <class T>
HeadMatrix<T> head_matrix(const TensorView& view, std::int64_t rows) {
  return {elements<T>(view), view.row_stride(), rows};
}

/// What kernels read: one set of frequencies, that of sequences of so many tokens.
inline Rotary rotary_of(const AttentionRule& rule, std::int64_t tokens) {
  Rotary rotary = rule.rotary;
  rotary.frequencies = rotary.frequencies_of(tokens);
  return rotary;
}

/// `low` or `high` of a pair of features after it was turned by an angle; `sign` is -1 for
/// gradients, which turn back.
struct Turn {
  float cosine;
  float sine;
};
DSTRAIN_DEVICE Turn turn_of(const Rotary& rotary, std::int64_t position, int feature, float sign) {
  const auto half = static_cast<int>(rotary.dims / 2);
  const auto pair = static_cast<std::size_t>(feature < half ? feature : feature - half);
  const SinCos at = sin_cos(static_cast<float>(position) * rotary.frequencies[pair]);
  // The low one of a pair takes away what the high one adds.
  const float direction = feature < half ? -sign : sign;
  return {at.cosine * rotary.magnitude, direction * (at.sine * rotary.magnitude)};
}
/// The feature that turns together with this one.
DSTRAIN_DEVICE int partner_of(const Rotary& rotary, int feature) {
  const auto half = static_cast<int>(rotary.dims / 2);
  return feature < half ? feature + half : feature - half;
}

/// Rows of a head that become a tile, or come of one.
template <class T>
struct TileRows {
  T* first;
  std::int64_t stride;
  std::int64_t count;         ///< others are zero
  std::int64_t position = 0;  ///< of the first, for who turns
  int head_size = 0;
};

/// tile = factor times rows, with zeros around them.
template <int rows, int columns, class T>
DSTRAIN_DEVICE void load_tile(const TileRows<const T>& from,
                              float factor,
                              float (&tile)[rows][columns + padding]) {
#pragma unroll 4
  for (int i = thread(); i < rows * columns; i += attention_threads) {
    const int row = i / columns;
    const int column = i % columns;
    const bool inside = row < from.count && column < from.head_size;
    tile[row][column] = inside ? to_float(from.first[row * from.stride + column]) * factor : 0.0F;
  }
}

/// The same, turned where there is a rotary embedding.
template <int rows, int columns, class T>
DSTRAIN_DEVICE void load_turned(const TileRows<const T>& from,
                                float factor,
                                const Rotary& rotary,
                                float (&tile)[rows][columns + padding]) {
  if (rotary.dims == 0) return load_tile<rows, columns, T>(from, factor, tile);
#pragma unroll 1
  for (int i = thread(); i < rows * columns; i += attention_threads) {
    const int row = i / columns;
    const int column = i % columns;
    float value = 0;
    if (row < from.count && column < from.head_size) {
      const T* const source = from.first + row * from.stride;
      value = to_float(source[column]) * factor;
      if (column < rotary.dims) {
        const Turn turn = turn_of(rotary, from.position + row, column, 1);
        const float other = to_float(source[partner_of(rotary, column)]) * factor;
        value = value * turn.cosine + other * turn.sine;
      }
    }
    tile[row][column] = value;
  }
}

/// rows = factor times the tile; with `turns` turned back where there is a rotary embedding.
template <int rows, int columns, class T>
DSTRAIN_DEVICE void store_tile(const float (&tile)[rows][columns + padding],
                               float factor,
                               const Rotary& rotary,
                               bool turns,
                               const TileRows<T>& to) {
#pragma unroll 1
  for (int i = thread(); i < rows * columns; i += attention_threads) {
    const int row = i / columns;
    const int column = i % columns;
    if (row >= to.count || column >= to.head_size) continue;
    float value = tile[row][column];
    if (turns && column < rotary.dims) {
      const Turn turn = turn_of(rotary, to.position + row, column, -1);
      value = value * turn.cosine + tile[row][partner_of(rotary, column)] * turn.sine;
    }
    to.first[row * to.stride + column] = from_float<T>(value * factor);
  }
}

/// Four floats of a row, at a multiple of four.
DSTRAIN_DEVICE float4 load4(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
DSTRAIN_DEVICE float dot4(const float4& a, const float4& b, float sum) {
  sum = fmaf(a.x, b.x, sum);
  sum = fmaf(a.y, b.y, sum);
  sum = fmaf(a.z, b.z, sum);
  return fmaf(a.w, b.w, sum);
}

/// The biases of a tile of scores by distance, times log2(e): of the score in row r and column c at
/// c - r + rows - 1.
template <int rows, class T>
DSTRAIN_DEVICE void load_biases(const DistanceBias& bias,
                                const T* table,
                                std::int64_t heads,
                                std::int64_t head,
                                std::int64_t key_behind_query,
                                float (&biases)[rows + key_tile]) {
  if (!bias.active()) return;
  for (int i = thread(); i < rows + key_tile - 1; i += attention_threads) {
    const std::int64_t row = bias.row_of(key_behind_query + i - (rows - 1));
    biases[i] = to_float(table[row * heads + head]) * log2_e;
  }
}

/// The group of dropout of a query and a tile of keys.
DSTRAIN_DEVICE std::int64_t dropout_group(const AttentionSizes& sizes,
                                          std::int64_t head,
                                          std::int64_t query,
                                          std::int64_t tile) {
  const std::int64_t tiles = (sizes.keys + key_tile - 1) / key_tile;
  return (head * sizes.tokens + query) * tiles + tile;
}

/// Calls `body` with an std::integral_constant of the columns of tiles that hold a head.
template <class Body>
void with_columns(std::int64_t head_size, const Body& body) {
  DSTRAIN_CHECK(head_size <= head_size_most, "GPUs attend with heads of up to {} features, not {}",
                head_size_most, head_size);
  if (head_size <= 64) return body(std::integral_constant<int, 64>());
  if (head_size <= 128) return body(std::integral_constant<int, 128>());
  body(std::integral_constant<int, 256>());
}

}  // namespace dstrain::ops::gpu
