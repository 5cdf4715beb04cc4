#include <cstddef>

#include <immintrin.h>

#include "runtime/ops/tile_bf16.h"

namespace dstrain::ops {
namespace {

constexpr int rows = 8;  // with two vectors of columns each: 16 sums hide the latency

/// Sums of `rows` x `vectors` vectors, in registers while k runs.
template <std::size_t vectors>
DSTRAIN_BF16 void panel(const PackedProduct& p, std::int64_t row, std::int64_t column) {
  float* const c = p.c + row * p.c_row + column;
  const std::uint32_t* const a = p.a + row * packed_edge / 2;
  const std::uint32_t* const b = p.b + column;
  __m512 sum[rows][vectors];
  for (int i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < vectors; ++j) {
      const float* const at = c + i * p.c_row + static_cast<std::int64_t>(j) * tile_edge;
      sum[i][j] = p.add ? _mm512_loadu_ps(at) : _mm512_setzero_ps();
    }
  }
  for (std::int64_t pair = 0; pair < p.k / 2; ++pair) {
    __m512bh columns[vectors];
    for (std::size_t j = 0; j < vectors; ++j) {
      columns[j] = reinterpret_cast<__m512bh>(
          _mm512_loadu_si512(b + pair * packed_edge + static_cast<std::int64_t>(j) * tile_edge));
    }
    for (int i = 0; i < rows; ++i) {
      const auto word = static_cast<int>(a[i * packed_edge / 2 + pair]);
      const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(word));
      for (std::size_t j = 0; j < vectors; ++j) {
        sum[i][j] = _mm512_dpbf16_ps(sum[i][j], factor, columns[j]);
      }
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < vectors; ++j) {
      _mm512_storeu_ps(c + i * p.c_row + static_cast<std::int64_t>(j) * tile_edge, sum[i][j]);
    }
  }
}

}  // namespace

void multiply_by_dots(const PackedProduct& p) {
  for (std::int64_t column = 0; column < p.n; column += 2 * tile_edge) {
    for (std::int64_t row = 0; row < p.m; row += rows) {
      column + tile_edge < p.n ? panel<2>(p, row, column) : panel<1>(p, row, column);
    }
  }
}

}  // namespace dstrain::ops
