#pragma once
#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// A (K, N) matrix, stored as (N, K) when `transposed`; dense, f32, bf16 or f16.
struct StoredMatrix {
  HostView view;
  bool transposed = false;
};

/// The layout in which oneDNN's AVX-512 kernels read the right operand (its names are BA16a64b and,
/// for bf16, BA16a64b2a): panels of 64 columns, each with all K rows one after the other; in bf16,
/// rows k and k + 1 are interleaved. Columns are padded to 64, rows to panel_row_padding, with
/// zeros.
inline constexpr std::int64_t panel_columns = 64;

constexpr std::int64_t panel_row_padding(DType dtype) {
  return dtype == DType::f32 ? 16 : 32;
}

/// Elements of the panels of a (K, N) matrix.
constexpr std::int64_t panels_numel(std::int64_t k, std::int64_t n, DType dtype) {
  return round_up(k, panel_row_padding(dtype)) * round_up(n, panel_columns);
}

/// Writes `b` as panels of `dtype`, f32 or bf16, converting as needed. In parallel.
void pack_panels(const StoredMatrix& b, DType dtype, std::byte* panels);

/// Rows [begin, begin + count) of an (M, K) matrix as dense rows of `dtype`. Parallel.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};
void convert_rows(const StoredMatrix& a, RowRange rows, DType dtype, std::byte* target);

}  // namespace dstrain::ops
