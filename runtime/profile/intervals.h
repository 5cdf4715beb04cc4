#pragma once
#include <span>
#include <vector>

#include "runtime/profile/span.h"

namespace dstrain::profile {

struct Interval {
  double begin = 0;
  double end = 0;
};
/// In order, and apart.
using Intervals = std::vector<Interval>;

/// When a lane, whose spans are in order of their ends, works: without the waits that are enclosed.
Intervals work_of(std::span<const Span> lane);
/// When it is in collectives.
Intervals collectives_of(std::span<const Span> lane);

/// All that is in one of them, or in both.
Intervals unite(const Intervals& one, const Intervals& other);
double seconds_of(const Intervals& intervals);
/// Of what is in both.
double seconds_in_both(const Intervals& one, const Intervals& other);

}  // namespace dstrain::profile
