#include <algorithm>

#include <immintrin.h>

#include "runtime/ops/tile_bf16.h"

namespace dstrain::ops {
namespace {

/// Returns (even[0], odd[0]), (even[1], odd[1]), ..., rounded to bf16.
DSTRAIN_BF16 inline __m512i interleave(const float* even, const float* odd) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(odd), _mm512_loadu_ps(even));
  return _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(both));
}

/// Packs pairs of rows of (K, N) values.
DSTRAIN_BF16 void pack_columns(
    const float* from, std::int64_t row, std::int64_t k, std::int64_t n, std::uint32_t* to) {
  for (std::int64_t pair = 0; pair < padded_pairs(k); ++pair) {
    const float* const even = from + 2 * pair * row;
    for (std::int64_t j = 0; j < n; j += tile_edge) {
      const bool inside = pair < k / 2;
      _mm512_storeu_si512(to + pair * packed_edge + j,
                          inside ? interleave(even + j, even + row + j) : _mm512_setzero_si512());
    }
  }
}

/// Packs pairs of neighbours of (M, K) values with contiguous rows.
DSTRAIN_BF16 void pack_rows(
    const float* from, std::int64_t row, std::int64_t m, std::int64_t k, std::uint32_t* to) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t first = 0; first < k; first += 2 * tile_edge) {
      const float* const values = from + i * row + first;
      const __m512 low = _mm512_loadu_ps(values);
      const __m512 high =
          first + tile_edge < k ? _mm512_loadu_ps(values + tile_edge) : _mm512_setzero_ps();
      _mm512_storeu_si512(to + (i * packed_edge + first) / 2,
                          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    }
  }
}

/// Transposes 16 x 16 words in place, in four steps: words trade places with those `1 << step` rows
/// and columns away.
DSTRAIN_BF16 inline void transpose(__m512i (&rows)[tile_edge]) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int distance = 1; distance < tile_edge; distance *= 2) {
    const __m512i partner = _mm512_xor_si512(lanes, _mm512_set1_epi32(distance));
    const __mmask16 high = _mm512_test_epi32_mask(lanes, _mm512_set1_epi32(distance));
    for (int i = 0; i < tile_edge; ++i) {
      if ((i & distance) != 0) continue;
      const __m512i upper = rows[i];
      const __m512i lower = rows[i + distance];
      rows[i] = _mm512_mask_permutexvar_epi32(upper, high, partner, lower);
      rows[i + distance] =
          _mm512_mask_permutexvar_epi32(lower, static_cast<__mmask16>(~high), partner, upper);
    }
  }
}

/// Packs pairs of neighbours of (M, K) values that are stored as (K, M).
DSTRAIN_BF16 void pack_transposed(
    const float* from, std::int64_t column, std::int64_t m, std::int64_t k, std::uint32_t* to) {
  for (std::int64_t i = 0; i < m; i += tile_edge) {
    for (std::int64_t first = 0; first < k / 2; first += tile_edge) {
      const std::int64_t pairs = std::min(tile_edge, k / 2 - first);
      __m512i words[tile_edge]{};
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        const float* const even = from + 2 * (first + pair) * column + i;
        words[pair] = interleave(even, even + column);
      }
      transpose(words);
      for (std::int64_t row = 0; row < tile_edge; ++row) {
        _mm512_storeu_si512(to + (i + row) * packed_edge / 2 + first, words[row]);
      }
    }
  }
}

}  // namespace

void pack_left(const TileOperand& a, std::uint32_t* packed) {
  if (a.column == 1) {
    pack_rows(a.values, a.row, a.rows, a.columns, packed);
  } else {
    pack_transposed(a.values, a.column, a.rows, a.columns, packed);
  }
}

void pack_right(const TileOperand& b, std::uint32_t* packed) {
  pack_columns(b.values, b.row, b.rows, b.columns, packed);
}

}  // namespace dstrain::ops
