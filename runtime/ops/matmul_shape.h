#pragma once
#include <compare>
#include <cstdint>

#include "runtime/ops/matmul.h"

namespace dstrain::ops {

/// Everything about a matrix product except its addresses: what a prepared product is kept by.
struct MatmulShape {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t a_row;  ///< elements from one stored row of a to the next
  std::int64_t b_row;
  std::int64_t out_row;
  bool a_transposed;
  bool b_transposed;
  bool bias;
  bool accumulate;
  friend auto operator<=>(const MatmulShape&, const MatmulShape&) = default;
};

/// Reads the sizes off `args`. Throws Error{internal} when the views do not fit each other.
MatmulShape matmul_shape(const MatmulArgs& args);

}  // namespace dstrain::ops
