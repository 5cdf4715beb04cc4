#pragma once
#include <cstdint>
#include <type_traits>

#include "runtime/ops/attention.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/sin_cos.h"

namespace dstrain::ops::gpu {

// Access to rows of heads in attention's kernels, and their rotation by position.

/// Keys per tile of scores.
inline constexpr int key_tile = 64;
inline constexpr std::int64_t head_size_most = attention_head_size_max(DeviceKind::cuda);
/// Floats of padding after each row of a tile, to avoid bank conflicts.
inline constexpr int padding = 4;

/// One head in a tensor whose rows may be strided.
template <class T>
struct HeadMatrix {
  T* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0;  ///< per sequence
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

/// Whether rows of a head can be copied 16 bytes at a time.
template <class T>
bool is_aligned(const HeadMatrix<T>& matrix, std::int64_t head_size) {
  constexpr std::int64_t chunk = 16 / sizeof(T);
  return reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride % chunk == 0 &&
         head_size % chunk == 0;
}

/// Returns the rotary embedding with only the frequencies for sequences of `tokens` tokens.
inline Rotary rotary_of(const AttentionRule& rule, std::int64_t tokens) {
  Rotary rotary = rule.rotary;
  rotary.frequencies = rotary.frequencies_of(tokens);
  return rotary;
}

/// The factors that rotate one feature of a pair: value * cosine + partner * sine. `sign` is -1 for
/// gradients, which rotate back.
struct Turn {
  float cosine;
  float sine;
};
DSTRAIN_DEVICE Turn turn_of(const Rotary& rotary, std::int64_t position, int feature, float sign) {
  const auto half = static_cast<int>(rotary.dims / 2);
  const auto pair = static_cast<std::size_t>(feature < half ? feature : feature - half);
  const SinCos at = sin_cos(static_cast<float>(position) * rotary.frequencies[pair]);
  // The low feature of a pair subtracts its partner, the high one adds it.
  const float direction = feature < half ? -sign : sign;
  return {at.cosine * rotary.magnitude, direction * (at.sine * rotary.magnitude)};
}
/// The other feature of the pair.
DSTRAIN_DEVICE int partner_of(const Rotary& rotary, int feature) {
  const auto half = static_cast<int>(rotary.dims / 2);
  return feature < half ? feature + half : feature - half;
}

/// Rows of a head that a tile is loaded from or stored to.
template <class T>
struct TileRows {
  T* first;
  std::int64_t stride;
  std::int64_t count;         ///< further rows of the tile are zero
  std::int64_t position = 0;  ///< of the first row, for the rotation
  int head_size = 0;
};

/// The position of a block, or of one of its turns, in the problem.
struct AttentionPlace {
  DSTRAIN_DEVICE AttentionPlace(std::int64_t of_sequence,
                                std::int64_t of_head,
                                std::int64_t of_key_head)
      : sequence(static_cast<std::int32_t>(of_sequence)),
        head(static_cast<std::int32_t>(of_head)),
        key_head(static_cast<std::int32_t>(of_key_head)) {}
  std::int32_t sequence;
  std::int32_t head;
  std::int32_t key_head;   ///< the head of keys and values
  std::int64_t query = 0;  ///< the first of the query tile
  std::int32_t tile = 0;   ///< the key tile
  [[nodiscard]] DSTRAIN_DEVICE std::int64_t key() const { return std::int64_t{tile} * key_tile; }
};

template <class T>
DSTRAIN_DEVICE TileRows<T> query_rows(const AttentionSizes& sizes,
                                      const HeadMatrix<T>& matrix,
                                      const AttentionPlace& at) {
  return {matrix.at(at.sequence, at.head, at.query, sizes.head_size), matrix.stride,
          sizes.tokens - at.query, at.query, static_cast<int>(sizes.head_size)};
}
template <class T>
DSTRAIN_DEVICE TileRows<T> key_rows(const AttentionSizes& sizes,
                                    const HeadMatrix<T>& matrix,
                                    const AttentionPlace& at) {
  return {matrix.at(at.sequence, at.key_head, at.key(), sizes.head_size), matrix.stride,
          sizes.keys - at.key(), at.key(), static_cast<int>(sizes.head_size)};
}

/// rows = factor * tile; with `turns`, rotated back if there is a rotary embedding. A warp stores a
/// row at a time; its lanes take pairs of rotated features, then the features past them.
template <int threads, int rows, int columns, class T>
DSTRAIN_DEVICE void store_tile(const float (&tile)[rows][columns + padding],
                               float factor,
                               const Rotary& rotary,
                               bool turns,
                               const TileRows<T>& to) {
  const int pairs = turns ? static_cast<int>(rotary.dims / 2) : 0;
  const int lane = thread() & (warp_threads - 1);
#pragma unroll 1
  for (int row = thread() / warp_threads; row < rows; row += threads / warp_threads) {
    if (row >= to.count) return;
    T* const target = to.first + row * to.stride;
#pragma unroll 1
    for (int i = lane; i < pairs; i += warp_threads) {
      const Turn turn = turn_of(rotary, to.position + row, i, -1);
      const float low = tile[row][i];
      const float high = tile[row][i + pairs];
      target[i] = from_float<T>((low * turn.cosine + high * turn.sine) * factor);
      target[i + pairs] = from_float<T>((high * turn.cosine - low * turn.sine) * factor);
    }
#pragma unroll 1
    for (int i = 2 * pairs + lane; i < to.head_size; i += warp_threads) {
      target[i] = from_float<T>(tile[row][i] * factor);
    }
  }
}

/// Calls `body` with the tile width that holds a head, as a std::integral_constant.
template <class Body>
void with_columns(std::int64_t head_size, const Body& body) {
  DSTRAIN_CHECK(head_size <= head_size_most, "GPUs attend with heads of up to {} features, not {}",
                head_size_most, head_size);
  if (head_size <= 64) return body(std::integral_constant<int, 64>());
  if (head_size <= 128) return body(std::integral_constant<int, 128>());
  body(std::integral_constant<int, 256>());
}

}  // namespace dstrain::ops::gpu
