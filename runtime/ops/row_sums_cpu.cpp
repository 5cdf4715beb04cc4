#include <algorithm>

#include "runtime/ops/chunks.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/row_sums.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// Rows are on different pages, so wide parts of them touch fewer pages.
constexpr std::int64_t columns_per_task = 192;
constexpr std::int64_t rows_per_group = 64;

/// Sums of one task's columns.
struct Sums {
  float plain[columns_per_task];
  float weighted[columns_per_task];
};

template <class T, bool weighted>
[[gnu::always_inline]] inline void add_row(
    const RowSums<T>& s, std::int64_t row, std::int64_t begin, std::int64_t width, Sums& group) {
  const T* const values = s.values + row * s.columns + begin;
  for (std::int64_t j = 0; j < width; ++j) group.plain[j] += to_float(values[j]);
  if constexpr (weighted) {
    const T* const x = s.input + row * s.columns + begin;
    const float mean = s.mean == nullptr ? 0.0F : s.mean[row];
    const float rstd = s.rstd[row];
    for (std::int64_t j = 0; j < width; ++j) {
      group.weighted[j] += to_float(values[j]) * ((to_float(x[j]) - mean) * rstd);
    }
  }
}

template <class T, bool weighted>
[[gnu::always_inline]] inline void add_groups(const RowSums<T>& s,
                                              std::int64_t begin,
                                              std::int64_t width,
                                              Sums& total) {
  for (std::int64_t first = 0; first < s.rows; first += rows_per_group) {
    Sums group{};
    const std::int64_t last = std::min(s.rows, first + rows_per_group);
    for (std::int64_t row = first; row < last; ++row) {
      add_row<T, weighted>(s, row, begin, width, group);
    }
    for (std::int64_t j = 0; j < width; ++j) {
      total.plain[j] += group.plain[j];
      if constexpr (weighted) total.weighted[j] += group.weighted[j];
    }
  }
}

template <class T>
DSTRAIN_SIMD_CLONES void plain_kernel(const RowSums<T>& s,
                                      std::int64_t begin,
                                      std::int64_t width,
                                      Sums& total) {
  add_groups<T, false>(s, begin, width, total);
}

template <class T>
DSTRAIN_SIMD_CLONES void weighted_kernel(const RowSums<T>& s,
                                         std::int64_t begin,
                                         std::int64_t width,
                                         Sums& total) {
  add_groups<T, true>(s, begin, width, total);
}

void store(const float* sums, RowSumTarget target, std::int64_t begin, std::int64_t width) {
  if (target.values == nullptr) return;
  for (std::int64_t j = 0; j < width; ++j) {
    float& value = target.values[begin + j];
    value = target.accumulate ? value + sums[j] : sums[j];
  }
}

}  // namespace

template <class T>
void add_up_rows(const RowSums<T>& sums, RowSumTarget plain, RowSumTarget weighted) {
  for_chunks(sums.columns, columns_per_task, [&](std::int64_t begin, std::int64_t end) {
    Sums total{};
    if (sums.input == nullptr) {
      plain_kernel(sums, begin, end - begin, total);
    } else {
      weighted_kernel(sums, begin, end - begin, total);
      store(total.weighted, weighted, begin, end - begin);
    }
    store(total.plain, plain, begin, end - begin);
  });
}

template void add_up_rows(const RowSums<float>&, RowSumTarget, RowSumTarget);
template void add_up_rows(const RowSums<BFloat16>&, RowSumTarget, RowSumTarget);
template void add_up_rows(const RowSums<Float16>&, RowSumTarget, RowSumTarget);

}  // namespace dstrain::ops
