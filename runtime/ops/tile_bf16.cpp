#include "runtime/ops/tile_bf16.h"

#include <algorithm>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

struct Packed {
  alignas(64) std::uint32_t a[packed_words];  ///< (M, K / 2) pairs of neighbours in a row
  alignas(64) std::uint32_t b[packed_words];  ///< (K / 2, N) pairs of neighbours in a column
};

/// Intel's manual, volume 2, CPUID: leaf 7, EDX, bit 22. Not every compiler has a name for it.
bool has_amx_bf16() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 22 & 1U) != 0;
}

/// Returns none under the sanitizers, whose frames are aligned for smaller vectors. Intel's
/// VDPBF16PS runs at half the rate of f32 FMA, AMD's at twice it.
Bf16Unit find_unit() {
  constexpr int request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;
  if (DSTRAIN_SIMD_DISPATCH == 0 || !__builtin_cpu_supports("avx512bf16")) return Bf16Unit::none;
  if (has_amx_bf16() && ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0) {
    return Bf16Unit::amx;
  }
  return __builtin_cpu_is("amd") ? Bf16Unit::dot : Bf16Unit::none;
}

DSTRAIN_SIMD_CLONES
void scale_columns(const TileProduct& t) {
  for (std::int64_t i = 0; i < t.m; ++i) {
    float* const row = t.c + i * t.c_row;
    for (std::int64_t j = 0; j < t.n; ++j) row[j] *= t.factors[j];
  }
}

/// No size exceeds packed_edge.
void multiply_block(const TileProduct& t, bool add) {
  Packed packed;
  if (t.a_packed == nullptr) pack_left({t.a, t.a_row, t.a_column, t.m, t.k}, packed.a);
  if (t.b_packed == nullptr) pack_right({t.b, t.b_row, 1, t.k, t.n}, packed.b);
  const PackedProduct product{t.a_packed != nullptr ? t.a_packed : packed.a,
                              t.b_packed != nullptr ? t.b_packed : packed.b,
                              t.c,
                              t.c_row,
                              t.m,
                              t.n,
                              t.k,
                              add};
  bf16_unit() == Bf16Unit::amx ? multiply_by_amx(product) : multiply_by_dots(product);
}

}  // namespace

Bf16Unit bf16_unit() {
  static const Bf16Unit unit = find_unit();
  return unit;
}

bool rounds_products() {
  return bf16_unit() != Bf16Unit::none;
}

void multiply_rounded(const TileProduct& tile, Into into) {
  if (into == Into::scale_add) scale_columns(tile);
  const TileProductScope scope;
  for (std::int64_t k = 0; k < tile.k; k += packed_edge) {
    for (std::int64_t j = 0; j < tile.n; j += packed_edge) {
      for (std::int64_t i = 0; i < tile.m; i += packed_edge) {
        TileProduct part = tile;
        part.c += i * tile.c_row + j;
        part.a += i * tile.a_row + k * tile.a_column;
        part.b += k * tile.b_row + j;
        part.m = std::min(packed_edge, tile.m - i);
        part.n = std::min(packed_edge, tile.n - j);
        part.k = std::min(packed_edge, tile.k - k);
        multiply_block(part, k > 0 || into != Into::store);
      }
    }
  }
}

}  // namespace dstrain::ops
