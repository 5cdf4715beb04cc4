#pragma once
#include <cstdint>

namespace dstrain::ops {

/// Operands of a small matrix product in cache, for kernels: element (i, k) of a lies at
/// a[i * a_row + k * a_column], so that a may be transposed; b and c have contiguous rows.
struct TileProduct {
  float* c;  ///< (M, N), rows c_row apart
  std::int64_t c_row;
  const float* a;  ///< (M, K)
  std::int64_t a_row;
  std::int64_t a_column;
  const float* b;  ///< (K, N), rows b_row apart
  std::int64_t b_row;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

/// c += a b on the calling thread. The order of additions depends on the sizes alone; products and
/// sums are fused where the machine can.
void add_tile_product(const TileProduct& tile);

}  // namespace dstrain::ops
