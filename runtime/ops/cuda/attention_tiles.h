#pragma once
#include "runtime/ops/cuda/attention_rows.h"
#include "runtime/ops/cuda/attention_rules.h"
#include "runtime/ops/cuda/dropout_mask.h"

namespace dstrain::ops::gpu {

// A block of 256 threads works on tiles of queries by 64 keys. Thread (x, y), both in [0, 16),
// computes rows y, y + 16, ... and columns x, x + 16, ... of every result, so its four columns of a
// row of scores are those of one dropout draw. Rows of tiles are padded by four floats to avoid
// bank conflicts.

inline constexpr int attention_threads = 256;

/// Resident blocks per multiprocessor that the kernels are compiled for.
constexpr int blocks_at_once(int columns) {
  return columns <= 64 ? 2 : 1;
}

DSTRAIN_DEVICE int tile_x() {
  return thread() % 16;
}
DSTRAIN_DEVICE int tile_y() {
  return thread() / 16;
}

/// tile = factor * rows, padded with zeros.
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

/// Like load_tile(), and rotates rows if there is a rotary embedding.
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

/// Loads four floats, aligned to 16 bytes.
DSTRAIN_DEVICE float4 load4(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
DSTRAIN_DEVICE float dot4(const float4& a, const float4& b, float sum) {
  sum = fmaf(a.x, b.x, sum);
  sum = fmaf(a.y, b.y, sum);
  sum = fmaf(a.z, b.z, sum);
  return fmaf(a.w, b.w, sum);
}

}  // namespace dstrain::ops::gpu
