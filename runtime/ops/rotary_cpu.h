#pragma once
#include "runtime/ops/rotary.h"

namespace dstrain::ops {

/// The sines and cosines of all positions, in the caller's memory. For kernels.
class RotaryTable {
 public:
  RotaryTable() = default;
  /// Returns the floats of a table of `positions` positions.
  static std::int64_t numel(const Rotary& rotary, std::int64_t positions) {
    return positions * rotary.dims;
  }
  RotaryTable(const Rotary& rotary, float* memory) : dims_(rotary.dims), memory_(memory) {}
  /// Computes them for sequences of this length, on the calling thread and the compute threads.
  void fill(const Rotary& rotary, std::int64_t positions) const;
  /// Computes the rows of `count` positions from `first` on, of a sequence of `tokens` tokens, on
  /// the calling thread.
  struct Positions {
    std::int64_t tokens;
    std::int64_t first;
    std::int64_t count;
  };
  void fill(const Rotary& rotary, const Positions& positions) const;

  enum class Direction : std::int8_t { forward, backward };  ///< backward is for gradients
  /// Rotates rows of a tile, `columns` apart, at positions from `first` on.
  struct Rows {
    float* values;
    std::int64_t count;
    std::int64_t columns;
    std::int64_t first;
  };
  void turn(const Rows& rows, Direction direction) const;

 private:
  std::int64_t dims_ = 0;
  float* memory_ = nullptr;  ///< per position dims / 2 cosines, then as many sines
};

}  // namespace dstrain::ops
