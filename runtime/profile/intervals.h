#pragma once
#include <span>
#include <vector>

#include "runtime/profile/span.h"

namespace dstrain::profile {

struct Interval {
  double begin = 0;
  double end = 0;
};
/// Sorted and disjoint.
using Intervals = std::vector<Interval>;

/// Returns when a lane works, minus the waits enclosed in that. Its spans are in order of their
/// ends.
Intervals work_of(std::span<const Span> lane);
/// Returns when the lane is in collectives.
Intervals collectives_of(std::span<const Span> lane);

/// Returns the union of both.
Intervals unite(const Intervals& one, const Intervals& other);
double seconds_of(const Intervals& intervals);
/// Returns the length of the intersection.
double seconds_in_both(const Intervals& one, const Intervals& other);

}  // namespace dstrain::profile
