#pragma once
#include <algorithm>
#include <type_traits>

#include "runtime/ops/cuda/block_sum.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/row_parts.h"

// How kernels of norms share out the elements of a row.

namespace dstrain::ops::gpu {

/// Calls `body(part)` for the parts of the block's row that the thread has: one at most, a whole
/// one, where they are held in registers.
template <int threads, bool held, class Args, class Body>
DSTRAIN_DEVICE void for_row(const Args& args, const Body& body) {
  if constexpr (held) {
    const std::int64_t begin = static_cast<std::int64_t>(thread()) * Args::numel;
    if (begin < args.columns) body(WholePart<Args::numel>{begin});
  } else {
    for_parts<Args::numel, threads>(args.columns, args.aligned, body);
  }
}

/// The parts of a row that the thread has. Where they are held, all threads load at once and
/// without a branch, which would wait for what was loaded: `instead` of no row, and the last part
/// instead of none.
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

/// Calls `body(threads, held)` for rows of so many columns, with constants. The threads, and so the
/// order of sums, do not depend on where memory begins.
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
