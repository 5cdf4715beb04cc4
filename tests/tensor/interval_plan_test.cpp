#include "runtime/tensor/interval_plan.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"

using dstrain::Interval;
using dstrain::place_intervals;

TEST_CASE("place_intervals: intervals that live at the same time do not overlap",
          "[tensor][interval]") {
  const auto seed = GENERATE(range(0, 30));
  std::mt19937 random(static_cast<unsigned>(seed));
  std::uniform_int_distribution<int> time(0, 20);
  std::uniform_int_distribution<int> size(0, 5000);
  std::vector<Interval> intervals(60);
  for (Interval& interval : intervals) {
    const int first = time(random);
    interval = {size(random), first, first + time(random) / 3};
  }
  const dstrain::Bytes total = place_intervals(intervals);
  for (std::size_t a = 0; a < intervals.size(); ++a) {
    CHECK(intervals[a].offset % 64 == 0);
    CHECK(intervals[a].offset + intervals[a].bytes <= total);
    for (std::size_t b = 0; b < a; ++b) {
      const bool together =
          intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
      const bool apart = intervals[a].offset + intervals[a].bytes <= intervals[b].offset ||
                         intervals[b].offset + intervals[b].bytes <= intervals[a].offset;
      CHECK((!together || apart || intervals[a].bytes == 0 || intervals[b].bytes == 0));
    }
  }
}

TEST_CASE("place_intervals: memory is used again", "[tensor][interval]") {
  std::vector<Interval> one_after_another{{1000, 0, 1}, {1000, 2, 3}, {1000, 4, 5}};
  CHECK(place_intervals(one_after_another) == 1024);
  std::vector<Interval> nested{{640, 0, 5}, {640, 1, 4}, {640, 2, 3}, {640, 6, 6}};
  CHECK(place_intervals(nested) == 3 * 640);
}
