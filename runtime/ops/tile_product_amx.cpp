#include <immintrin.h>

#include "runtime/ops/tile_bf16.h"

#define DSTRAIN_AMX __attribute__((target("arch=x86-64-v4,avx512bf16,amx-tile,amx-bf16")))

namespace dstrain::ops {
namespace {

/// Tiles have 16 rows of 64 bytes, 16 floats or 16 pairs of bf16.
struct TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14]{};
  std::uint16_t row_bytes[16]{64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16]{tile_edge, tile_edge, tile_edge, tile_edge,
                        tile_edge, tile_edge, tile_edge, tile_edge};
};
static_assert(sizeof(TileConfiguration) == 64);

/// How many scopes have set up the calling thread's tiles, which are registers of the thread.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local int depth = 0;

/// The addresses of the operands and the sums of some tiles.
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
  constexpr long a_stride = packed_edge / 2 * sizeof(std::uint32_t);
  constexpr long b_stride = packed_edge * sizeof(std::uint32_t);
  const long c_stride = group.c_row * static_cast<long>(sizeof(float));
  float* const right = group.c + tile_edge;
  float* const below = group.c + tile_edge * group.c_row;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (group.add) {
    _tile_loadd(0, group.c, c_stride);
    if constexpr (columns == 2) _tile_loadd(1, right, c_stride);
    if constexpr (rows == 2) _tile_loadd(2, below, c_stride);
    if constexpr (rows == 2 && columns == 2) _tile_loadd(3, below + tile_edge, c_stride);
  }
  for (std::int64_t pair = 0; pair < group.pairs; pair += tile_edge) {
    const std::uint32_t* const a = group.a + pair;
    const std::uint32_t* const b = group.b + pair * packed_edge;
    _tile_loadd(4, a, a_stride);
    _tile_loadd(6, b, b_stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (columns == 2) {
      _tile_loadd(7, b + tile_edge, b_stride);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (rows == 2) {
      _tile_loadd(5, a + tile_edge * packed_edge / 2, a_stride);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (rows == 2 && columns == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, group.c, c_stride);
  if constexpr (columns == 2) _tile_stored(1, right, c_stride);
  if constexpr (rows == 2) _tile_stored(2, below, c_stride);
  if constexpr (rows == 2 && columns == 2) _tile_stored(3, below + tile_edge, c_stride);
}

DSTRAIN_AMX void set_tiles_up() {
  // In static memory: g++ 12 assumes that the instruction reads eight bytes, and drops the other
  // stores to a local.
  static constexpr TileConfiguration configuration;
  _tile_loadconfig(&configuration);
}

DSTRAIN_AMX void release_tiles() {
  _tile_release();
}

}  // namespace

TileProductScope::TileProductScope() {
  if (bf16_unit() == Bf16Unit::amx && depth++ == 0) set_tiles_up();
}

TileProductScope::~TileProductScope() {
  if (bf16_unit() == Bf16Unit::amx && --depth == 0) release_tiles();
}

void multiply_by_amx(const PackedProduct& p) {
  for (std::int64_t i = 0; i < p.m; i += 2 * tile_edge) {
    for (std::int64_t j = 0; j < p.n; j += 2 * tile_edge) {
      const TileGroup group{p.a + i * packed_edge / 2, p.b + j, padded_pairs(p.k),
                            p.c + i * p.c_row + j,     p.c_row, p.add};
      const bool two_rows = i + tile_edge < p.m;
      const bool two_columns = j + tile_edge < p.n;
      if (two_rows && two_columns) multiply<2, 2>(group);
      if (two_rows && !two_columns) multiply<2, 1>(group);
      if (!two_rows && two_columns) multiply<1, 2>(group);
      if (!two_rows && !two_columns) multiply<1, 1>(group);
    }
  }
}

}  // namespace dstrain::ops
