#pragma once
#include <vector>

#include "runtime/ops/matmul.h"

namespace dstrain::ops {

/// A product of at most so many rows of a, as in decoding, is bound by reading b. It runs on
/// kernels that read b once, where it is.
inline constexpr std::int64_t few_rows_max = 16;

/// out (M, N) = a (M, K) b (K, N) [+ bias (N)], with M <= few_rows_max. Each tensor is dense and
/// f32, bf16 or f16; sums are f32.
struct FewRows {
  HostView a;
  HostView b;  ///< or (N, K)
  HostView out;
  HostView bias;  ///< or empty
  bool b_transposed;
  bool dots;  ///< multiply with AVX512_BF16 (Bf16Unit::dot); a and b are bf16
};

/// Memory for a copy of a, which products use in turn. It grows to the largest.
using PackedRows = std::vector<float>;

/// Computes on the calling thread and the compute threads, which share the columns. The bits of a
/// row of `out` depend on its row of a, on b and the bias, but not on other rows or the number of
/// threads: each sum runs along K in one order.
void multiply_few_rows(const FewRows& product, PackedRows& packed);

}  // namespace dstrain::ops
