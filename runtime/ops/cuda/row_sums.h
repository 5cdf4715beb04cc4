#pragma once
#include "runtime/device/stream.h"
#include "runtime/ops/row_sums.h"

namespace dstrain::ops::gpu {

/// A (rows, columns) matrix whose rows are summed as in ops/row_sums.h, and the targets of both
/// sums.
template <class T>
struct RowSums {
  const T* values;
  std::int64_t rows;
  std::int64_t columns;
  const T* input = nullptr;     ///< (rows, columns) or null
  const float* mean = nullptr;  ///< (rows); null: 0
  const float* rstd = nullptr;  ///< (rows)
  RowSumTarget plain{};
  RowSumTarget weighted{};  ///< written only with an input
};

/// Adds every 12th row of a slab of rows, then those sums, then those of slabs, in order: the bits
/// depend on the shape alone.
template <class T>
void add_up_rows(const char* op, const RowSums<T>& sums, StreamView stream);
extern template void add_up_rows(const char*, const RowSums<float>&, StreamView);
extern template void add_up_rows(const char*, const RowSums<BFloat16>&, StreamView);
extern template void add_up_rows(const char*, const RowSums<Float16>&, StreamView);

}  // namespace dstrain::ops::gpu
