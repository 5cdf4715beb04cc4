#include "runtime/profile/intervals.h"

#include <algorithm>

namespace dstrain::profile {
namespace {

/// Adds `lane[index]` to `work`, minus the waits that it encloses, which come before it in the
/// lane.
void add_work(std::span<const Span> lane, std::size_t index, Intervals& work) {
  const Span& whole = lane[index];
  const auto first = static_cast<std::ptrdiff_t>(work.size());
  double end = whole.end;  // of the rest of the work, which is cut from its end backwards
  for (std::size_t i = index; i-- > 0 && lane[i].begin >= whole.begin;) {
    if (lane[i].activity != Activity::wait || lane[i].end > end) continue;
    if (lane[i].end < end) work.push_back({lane[i].end, end});
    end = lane[i].begin;
  }
  if (whole.begin < end) work.push_back({whole.begin, end});
  std::reverse(work.begin() + first, work.end());
}

}  // namespace

Intervals work_of(std::span<const Span> lane) {
  Intervals work;
  for (std::size_t i = 0; i < lane.size(); ++i) {
    if (is_work(lane[i].activity)) add_work(lane, i, work);
  }
  return work;
}

Intervals collectives_of(std::span<const Span> lane) {
  Intervals intervals;
  for (const Span& span : lane) {
    if (is_collective(span.activity)) intervals.push_back({span.begin, span.end});
  }
  return intervals;
}

Intervals unite(const Intervals& one, const Intervals& other) {
  Intervals all;
  std::ranges::merge(one, other, std::back_inserter(all), {}, &Interval::begin, &Interval::begin);
  Intervals united;
  for (const Interval& interval : all) {
    if (!united.empty() && interval.begin <= united.back().end) {
      united.back().end = std::max(united.back().end, interval.end);
    } else {
      united.push_back(interval);
    }
  }
  return united;
}

double seconds_of(const Intervals& intervals) {
  double seconds = 0;
  for (const Interval& interval : intervals) seconds += interval.end - interval.begin;
  return seconds;
}

double seconds_in_both(const Intervals& one, const Intervals& other) {
  double seconds = 0;
  auto a = one.begin();
  auto b = other.begin();
  while (a != one.end() && b != other.end()) {
    seconds += std::max(0.0, std::min(a->end, b->end) - std::max(a->begin, b->begin));
    a->end < b->end ? static_cast<void>(++a) : static_cast<void>(++b);
  }
  return seconds;
}

}  // namespace dstrain::profile
