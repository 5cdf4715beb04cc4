#pragma once
#include <cstdint>

namespace dstrain::ops {

/// Operands of a small matrix product in cache, for kernels: element (i, k) of a lies at
/// a[i * a_row + k * a_column], so that a may be transposed; b and c have contiguous rows. Fast
/// where M is a multiple of 8 and N of 16.
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
  const float* factors = nullptr;  ///< (N), of Into::scale_add
  bool rounds = false;             ///< a and b may be rounded to bf16, where that is faster
};

/// What becomes of c: a b, c + a b, or c diag(factors) + a b.
enum class Into : std::int8_t { store, add, scale_add };

/// On the calling thread. The order of additions depends on the sizes alone; products and sums are
/// fused where the machine can.
void multiply_tile(const TileProduct& tile, Into into = Into::store);

}  // namespace dstrain::ops
