#pragma once
#include <cstdint>

#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"

namespace dstrain::ops {

/// A (rows, columns) matrix of T, float, BFloat16 or Float16, whose rows are summed; with `input`,
/// also the sum of each row times the normalized input, (input - mean) rstd. For kernels: runs at
/// once, on the calling thread and the compute threads.
template <class T>
struct RowSums {
  const T* values;
  std::int64_t rows;
  std::int64_t columns;
  const T* input = nullptr;     ///< (rows, columns) or null
  const float* mean = nullptr;  ///< (rows); null: 0
  const float* rstd = nullptr;  ///< (rows)
};

/// The target of one sum, (columns).
struct RowSumTarget {
  float* values = nullptr;  ///< null: the sum is not stored
  bool accumulate = false;
};

/// Adds rows in groups of 64, then the groups, in order: the bits do not depend on threads, and the
/// rounding error grows with rows / 64. Work is split by columns. `weighted` is written only if
/// there is a `sums.input`.
template <class T>
void add_up_rows(const RowSums<T>& sums, RowSumTarget plain, RowSumTarget weighted = {});
extern template void add_up_rows(const RowSums<float>&, RowSumTarget, RowSumTarget);
extern template void add_up_rows(const RowSums<BFloat16>&, RowSumTarget, RowSumTarget);
extern template void add_up_rows(const RowSums<Float16>&, RowSumTarget, RowSumTarget);

}  // namespace dstrain::ops
