#pragma once
#include <algorithm>
#include <type_traits>

#include "runtime/ops/cuda/block_sum.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/row_parts.h"

// How the norm kernels distribute a row over threads.

namespace dstrain::ops::gpu {

/// Calls `body(part)` for the thread's parts of the block's row. If they are held in registers,
/// there is at most one, a WholePart.
template <int threads, bool held, class Args, class Body>
DSTRAIN_DEVICE void for_row(const Args& args, const Body& body) {
  if constexpr (held) {
    const std::int64_t begin = static_cast<std::int64_t>(thread()) * Args::numel;
    if (begin < args.columns) body(WholePart<Args::numel>{begin});
  } else {
    for_parts<Args::numel, threads>(args.columns, args.aligned, body);
  }
}

/// The thread's parts of a row. If they are held in registers, all threads load at once, without a
/// branch that would wait for earlier loads: a missing row is replaced by `instead`, and a missing
/// part by the last one.
template <class T, bool held>
class OwnParts {
 public:
  DSTRAIN_DEVICE explicit OwnParts(const Pack<T, pack_numel<T>>& held_part) : only_(held_part) {}
  DSTRAIN_DEVICE OwnParts(std::int64_t columns, const T* row, const T* instead) : row_(row) {
    if constexpr (held) {
      const std::int64_t begin = static_cast<std::int64_t>(thread()) * numel;
      only_ = load<numel>(row == nullptr ? instead : row, std::min(begin, columns - numel));
    }
  }
  template <class Part>
  [[nodiscard]] DSTRAIN_DEVICE Pack<T, pack_numel<T>> at(const Part& part) const {
    if constexpr (held) return only_;
    return row_ == nullptr ? Pack<T, numel>{} : part.load(row_);
  }

 private:
  static constexpr int numel = pack_numel<T>;
  const T* row_ = nullptr;
  Pack<T, numel> only_;
};

template <class T>
DSTRAIN_DEVICE const T* row_of(const T* tensor, std::int64_t columns) {
  return tensor == nullptr ? nullptr : tensor + block_x() * columns;
}

/// Calls `body(threads, held)` with constants for rows of `columns` columns. The number of threads,
/// and so the order of sums, does not depend on alignment.
template <class T, class Body>
void with_threads(std::int64_t columns, bool aligned, const Body& body) {
  const auto with = [&](auto threads) {
    const bool held = aligned && columns > 0 && columns <= threads() * pack_numel<T>;
    if (held) return body(threads, std::true_type());
    body(threads, std::false_type());
  };
  if (columns <= 128 * pack_numel<T>) return with(std::integral_constant<int, 128>());
  if (columns <= 256 * pack_numel<T>) return with(std::integral_constant<int, 256>());
  with(std::integral_constant<int, 512>());
}

}  // namespace dstrain::ops::gpu
