#include "runtime/ops/tile_product_amx.h"

#include <algorithm>

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/ops/simd.h"

#define DSTRAIN_AMX __attribute__((target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")))

namespace dstrain::ops {
namespace {

/// Operands are packed in blocks of 64 x 64: 8 KiB each.
constexpr std::int64_t block = packed_edge;

/// A tile of AMX: 16 rows of 64 bytes, 16 floats or 16 pairs of bf16.
constexpr std::int64_t edge = 16;

struct TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14]{};
  std::uint16_t row_bytes[16]{64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16]{edge, edge, edge, edge, edge, edge, edge, edge};
};
static_assert(sizeof(TileConfiguration) == 64);

/// How many have set the calling thread's tiles up.
thread_local int depth = 0;

struct Packed {
  alignas(64) std::uint32_t a[packed_words];  ///< (M, K / 2) pairs of neighbours in a row
  alignas(64) std::uint32_t b[packed_words];  ///< (K / 2, N) pairs of neighbours in a column
};

/// (even[0], odd[0]), (even[1], odd[1]), ..., rounded to bf16.
DSTRAIN_AMX inline __m512i interleave(const float* even, const float* odd) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(odd), _mm512_loadu_ps(even));
  return _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(both));
}

/// Pairs that fill tiles: those past K / 2 are zeros.
std::int64_t padded_pairs(std::int64_t k) {
  return (k / 2 + edge - 1) / edge * edge;
}

/// Pairs of rows of (K, N) values.
DSTRAIN_AMX void pack_columns(
    const float* from, std::int64_t row, std::int64_t k, std::int64_t n, std::uint32_t* to) {
  for (std::int64_t pair = 0; pair < padded_pairs(k); ++pair) {
    const float* const even = from + 2 * pair * row;
    for (std::int64_t j = 0; j < n; j += edge) {
      const bool inside = pair < k / 2;
      _mm512_storeu_si512(to + pair * block + j,
                          inside ? interleave(even + j, even + row + j) : _mm512_setzero_si512());
    }
  }
}

/// Pairs of neighbours of (M, K) values with contiguous rows.
DSTRAIN_AMX void pack_rows(
    const float* from, std::int64_t row, std::int64_t m, std::int64_t k, std::uint32_t* to) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t first = 0; first < k; first += 2 * edge) {
      const float* const values = from + i * row + first;
      const __m512 low = _mm512_loadu_ps(values);
      const __m512 high = first + edge < k ? _mm512_loadu_ps(values + edge) : _mm512_setzero_ps();
      _mm512_storeu_si512(to + (i * block + first) / 2,
                          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    }
  }
}

/// 16 x 16 words, in place: four times, words trade places with those `1 << step` rows and columns
/// away.
DSTRAIN_AMX inline void transpose(__m512i (&rows)[edge]) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int distance = 1; distance < edge; distance *= 2) {
    const __m512i partner = _mm512_xor_si512(lanes, _mm512_set1_epi32(distance));
    const __mmask16 high = _mm512_test_epi32_mask(lanes, _mm512_set1_epi32(distance));
    for (int i = 0; i < edge; ++i) {
      if ((i & distance) != 0) continue;
      const __m512i upper = rows[i];
      const __m512i lower = rows[i + distance];
      rows[i] = _mm512_mask_permutexvar_epi32(upper, high, partner, lower);
      rows[i + distance] =
          _mm512_mask_permutexvar_epi32(lower, static_cast<__mmask16>(~high), partner, upper);
    }
  }
}

/// Pairs of neighbours of (M, K) values that are stored as (K, M).
DSTRAIN_AMX void pack_transposed(
    const float* from, std::int64_t column, std::int64_t m, std::int64_t k, std::uint32_t* to) {
  for (std::int64_t i = 0; i < m; i += edge) {
    for (std::int64_t first = 0; first < k / 2; first += edge) {
      const std::int64_t pairs = std::min(edge, k / 2 - first);
      __m512i words[edge]{};
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        const float* const even = from + 2 * (first + pair) * column + i;
        words[pair] = interleave(even, even + column);
      }
      transpose(words);
      for (std::int64_t row = 0; row < edge; ++row) {
        _mm512_storeu_si512(to + (i + row) * block / 2 + first, words[row]);
      }
    }
  }
}

/// Where the operands and the sums of some tiles begin.
struct TileGroup {
  const std::uint32_t* a;
  const std::uint32_t* b;
  std::int64_t pairs;  ///< K / 2, padded
  float* c;
  std::int64_t c_row;
  bool add;
};

/// `rows` x `columns` tiles of sums in registers 0 to 3, a in 4 and 5, b in 6 and 7.
template <int rows, int columns>
DSTRAIN_AMX void multiply(const TileGroup& group) {
  constexpr long a_stride = block / 2 * sizeof(std::uint32_t);
  constexpr long b_stride = block * sizeof(std::uint32_t);
  const long c_stride = group.c_row * static_cast<long>(sizeof(float));
  float* const right = group.c + edge;
  float* const below = group.c + edge * group.c_row;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (group.add) {
    _tile_loadd(0, group.c, c_stride);
    if constexpr (columns == 2) _tile_loadd(1, right, c_stride);
    if constexpr (rows == 2) _tile_loadd(2, below, c_stride);
    if constexpr (rows == 2 && columns == 2) _tile_loadd(3, below + edge, c_stride);
  }
  for (std::int64_t pair = 0; pair < group.pairs; pair += edge) {
    const std::uint32_t* const a = group.a + pair;
    const std::uint32_t* const b = group.b + pair * block;
    _tile_loadd(4, a, a_stride);
    _tile_loadd(6, b, b_stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (columns == 2) {
      _tile_loadd(7, b + edge, b_stride);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (rows == 2) {
      _tile_loadd(5, a + edge * block / 2, a_stride);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (rows == 2 && columns == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, group.c, c_stride);
  if constexpr (columns == 2) _tile_stored(1, right, c_stride);
  if constexpr (rows == 2) _tile_stored(2, below, c_stride);
  if constexpr (rows == 2 && columns == 2) _tile_stored(3, below + edge, c_stride);
}

DSTRAIN_AMX void scale_columns(const TileProduct& t) {
  for (std::int64_t i = 0; i < t.m; ++i) {
    float* const row = t.c + i * t.c_row;
    for (std::int64_t j = 0; j < t.n; j += edge) {
      _mm512_storeu_ps(row + j,
                       _mm512_mul_ps(_mm512_loadu_ps(row + j), _mm512_loadu_ps(t.factors + j)));
    }
  }
}

/// A product of one block: no size over 64.
void multiply_block(const TileProduct& t, bool add) {
  Packed packed;
  if (t.a_packed == nullptr) pack_left({t.a, t.a_row, t.a_column, t.m, t.k}, packed.a);
  if (t.b_packed == nullptr) pack_right({t.b, t.b_row, 1, t.k, t.n}, packed.b);
  const std::uint32_t* const a = t.a_packed != nullptr ? t.a_packed : packed.a;
  const std::uint32_t* const b = t.b_packed != nullptr ? t.b_packed : packed.b;
  for (std::int64_t i = 0; i < t.m; i += 2 * edge) {
    for (std::int64_t j = 0; j < t.n; j += 2 * edge) {
      const TileGroup group{a + i * block / 2,     b + j,   padded_pairs(t.k),
                            t.c + i * t.c_row + j, t.c_row, add};
      const bool two_rows = i + edge < t.m;
      const bool two_columns = j + edge < t.n;
      if (two_rows && two_columns) multiply<2, 2>(group);
      if (two_rows && !two_columns) multiply<2, 1>(group);
      if (!two_rows && two_columns) multiply<1, 2>(group);
      if (!two_rows && !two_columns) multiply<1, 1>(group);
    }
  }
}

DSTRAIN_AMX void set_tiles_up() {
  // In static memory: g++ 12 believes that the instruction reads eight bytes, and drops the stores
  // of the others to a local.
  static constexpr TileConfiguration configuration;
  _tile_loadconfig(&configuration);
}

DSTRAIN_AMX void release_tiles() {
  _tile_release();
}

/// The kernel lets a process use the tiles only after it has asked. Not under the sanitizers, whose
/// frames are aligned for smaller vectors.
bool ask_for_tiles() {
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;
  return DSTRAIN_SIMD_DISPATCH != 0 && __builtin_cpu_supports("avx512bf16") &&
         __builtin_cpu_supports("amx-bf16") &&
         ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

bool has_amx_products() {
  static const bool has = ask_for_tiles();
  return has;
}

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

TileProductScope::TileProductScope() {
  if (has_amx_products() && depth++ == 0) set_tiles_up();
}

TileProductScope::~TileProductScope() {
  if (has_amx_products() && --depth == 0) release_tiles();
}

void amx_product(const TileProduct& tile, Into into) {
  if (into == Into::scale_add) scale_columns(tile);
  const TileProductScope scope;
  for (std::int64_t k = 0; k < tile.k; k += block) {
    for (std::int64_t j = 0; j < tile.n; j += block) {
      for (std::int64_t i = 0; i < tile.m; i += block) {
        TileProduct part = tile;
        part.c += i * tile.c_row + j;
        part.a += i * tile.a_row + k * tile.a_column;
        part.b += k * tile.b_row + j;
        part.m = std::min(block, tile.m - i);
        part.n = std::min(block, tile.n - j);
        part.k = std::min(block, tile.k - k);
        multiply_block(part, k > 0 || into != Into::store);
      }
    }
  }
}

}  // namespace dstrain::ops
