#pragma once
#include <cstdint>

#include "runtime/ops/tile_product.h"

// The parts of a tile product whose operands are rounded to bf16.

/// Marks functions that run only on machines with a Bf16Unit.
#define DSTRAIN_BF16 __attribute__((target("arch=x86-64-v4,avx512bf16")))

namespace dstrain::ops {

/// Rows and columns of an AMX tile of floats, and lanes of a vector.
inline constexpr std::int64_t tile_edge = 16;

/// The unit that multiplies pairs of bf16 here: AMX, or AVX512_BF16's dot products if they beat
/// f32.
enum class Bf16Unit : std::uint8_t { none, dot, amx };
/// Asks the kernel once, because a process may use AMX only after that.
Bf16Unit bf16_unit();

/// Words along k that fill AMX's tiles; packed operands hold zeros past K / 2.
inline std::int64_t padded_pairs(std::int64_t k) {
  return (k / 2 + tile_edge - 1) / tile_edge * tile_edge;
}

/// A product of packed operands, added to c or replacing it. No size exceeds packed_edge; M and N
/// are multiples of tile_edge.
struct PackedProduct {
  const std::uint32_t* a;
  const std::uint32_t* b;
  float* c;
  std::int64_t c_row;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  bool add;
};
/// Call within a TileProductScope.
void multiply_by_amx(const PackedProduct& product);
void multiply_by_dots(const PackedProduct& product);

/// Multiplies any sizes that are multiples of tile_edge, on a machine with a unit; a or its
/// transpose has contiguous rows.
void multiply_rounded(const TileProduct& tile, Into into);

}  // namespace dstrain::ops
