#include "runtime/tensor/interval_plan.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace dstrain {
namespace {

constexpr Bytes alignment = 64;

bool alive_together(const Interval& a, const Interval& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Returns the lowest offset at which `interval` fits between `placed`, which is sorted by offset.
Bytes lowest_place(const Interval& interval, const std::vector<const Interval*>& placed) {
  Bytes offset = 0;
  for (const Interval* const other : placed) {
    if (!alive_together(interval, *other)) continue;
    if (offset + interval.bytes <= other->offset) break;
    offset = std::max(offset, round_up(other->offset + other->bytes, alignment));
  }
  return offset;
}

}  // namespace

Bytes place_intervals(std::span<Interval> intervals) {
  std::vector<Interval*> order;
  for (Interval& interval : intervals) {
    if (interval.bytes > 0) order.push_back(&interval);
  }
  std::stable_sort(order.begin(), order.end(), [](const Interval* a, const Interval* b) {
    return std::tuple(b->last - b->first, a->first) < std::tuple(a->last - a->first, b->first);
  });
  const auto by_offset = [](const Interval* a, const Interval* b) {
    return a->offset < b->offset;
  };
  std::vector<const Interval*> placed;
  Bytes total = 0;
  for (Interval* const interval : order) {
    interval->offset = lowest_place(*interval, placed);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), interval, by_offset), interval);
    total = std::max(total, round_up(interval->offset + interval->bytes, alignment));
  }
  return total;
}

}  // namespace dstrain
