#pragma once
#include "runtime/ops/cuda/packs.h"

namespace dstrain::ops::gpu {

/// Adjacent elements of a row that one thread owns, loaded and stored as packs.
template <int numel>
struct WholePart {
  std::int64_t begin;
  /// Calls `body(j)` for each element.
  template <class Body>
  DSTRAIN_DEVICE void each(const Body& body) const {
#pragma unroll
    for (int j = 0; j < numel; ++j) body(j);
  }
  template <class T>
  DSTRAIN_DEVICE Pack<T, numel> load(const T* row) const {
    return gpu::load<numel>(row, begin);
  }
  template <class T>
  DSTRAIN_DEVICE void store(const Pack<T, numel>& pack, T* row) const {
    gpu::store(pack, row, begin);
  }
};

/// The same, one element at a time: for the end of a row, or if rows are not aligned.
template <int numel>
struct PartInSingles {
  std::int64_t begin;
  int size;
  template <class Body>
  DSTRAIN_DEVICE void each(const Body& body) const {
#pragma unroll
    for (int j = 0; j < numel; ++j) {
      if (j < size) body(j);
    }
  }
  template <class T>
  DSTRAIN_DEVICE Pack<T, numel> load(const T* row) const {
    Pack<T, numel> pack{};
    each([&](int j) { pack.at[j] = row[begin + j]; });
    return pack;
  }
  template <class T>
  DSTRAIN_DEVICE void store(const Pack<T, numel>& pack, T* row) const {
    each([&](int j) { row[begin + j] = pack.at[j]; });
  }
};

/// Calls `body(part)` for the calling thread's parts of a row: every `threads`-th part of `numel`
/// elements. The elements and their order are the same whether `aligned` or not, so sums have the
/// same bits. Rows are aligned if their packs are.
template <int numel, int threads, class Body>
DSTRAIN_DEVICE void for_parts(std::int64_t columns, bool aligned, const Body& body) {
  constexpr std::int64_t step = threads * numel;
  std::int64_t begin = static_cast<std::int64_t>(thread()) * numel;
  if (aligned) {
    for (; begin + numel <= columns; begin += step) body(WholePart<numel>{begin});
  }
  for (; begin < columns; begin += step) {
    const std::int64_t left = columns - begin;
    body(PartInSingles<numel>{begin, left < numel ? static_cast<int>(left) : numel});
  }
}

}  // namespace dstrain::ops::gpu
