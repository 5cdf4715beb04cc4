#pragma once
#include <span>

#include "runtime/base/units.h"

namespace dstrain {

/// Memory that is needed from call `first` to call `last` of a schedule, inclusive.
struct Interval {
  Bytes bytes = 0;
  int first = 0;
  int last = 0;
  Bytes offset = 0;  ///< chosen by place_intervals()
};

/// Gives each interval an offset, a multiple of 64, so that no two that are live at the same time
/// overlap: long-lived ones first, each at the lowest free offset. Returns the total bytes needed.
Bytes place_intervals(std::span<Interval> intervals);

}  // namespace dstrain
