#pragma once
#include <span>

#include "runtime/base/units.h"

namespace dstrain {

/// A piece of memory that is needed from call `first` to call `last` of a schedule, inclusive.
struct Interval {
  Bytes bytes = 0;
  int first = 0;
  int last = 0;
  Bytes offset = 0;  ///< chosen by place_intervals()
};

/// Gives each interval an offset, a multiple of 64, such that no two that live at the same time
/// overlap: long-lived ones first, each at the lowest place that is free. Returns the bytes needed
/// in all.
Bytes place_intervals(std::span<Interval> intervals);

}  // namespace dstrain
