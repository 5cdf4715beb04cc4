#include "runtime/profile/timeline.h"

#include <catch2/catch.hpp>

#include "tests/profile/hand_clock.h"

using namespace dstrain;
using namespace dstrain::profile;

namespace {

Span span(Activity activity, double begin, double end) {
  return {begin, end, 0, activity};
}

}  // namespace

TEST_CASE("StepTimes: communication under work is hidden", "[profile]") {
  const std::vector<Span> compute{span(Activity::forward, 0, 4), span(Activity::wait, 4, 6),
                                  span(Activity::backward, 6, 9)};
  struct Row {
    std::vector<Span> communication;
    double busy;
    double exposed;
  };
  const Row row = GENERATE(Row{{}, 0, 0},                                     //
                           Row{{span(Activity::all_gather, 1, 3)}, 2, 0},     // inside
                           Row{{span(Activity::all_gather, 3, 7)}, 4, 2},     // over the wait
                           Row{{span(Activity::all_gather, 4, 6)}, 2, 2},     // the wait alone
                           Row{{span(Activity::all_gather, -2, 12)}, 14, 7},  // around all
                           Row{{span(Activity::all_gather, 0, 1),             // several in
                                span(Activity::reduce_scatter, 2, 5),         // one unit
                                span(Activity::all_gather, 8, 10)},
                               6,
                               2});
  const StepTimes times = add_up(compute, row.communication);
  CHECK(times.compute == 7);
  CHECK(times.communication == row.busy);
  CHECK(times.exposed == row.exposed);
}

TEST_CASE("StepTimes: without overlap all communication is exposed", "[profile]") {
  const StepTimes times = add_up(
      std::vector<Span>{span(Activity::forward, 0, 1), span(Activity::backward, 2, 3)},
      std::vector<Span>{span(Activity::all_gather, 1, 2), span(Activity::reduce_scatter, 3, 5)});
  CHECK(times.communication == 3);
  CHECK(times.exposed == 3);
}

TEST_CASE("StepTimes: waiting within work is no work", "[profile]") {
  const StepTimes times = add_up(
      std::vector<Span>{span(Activity::wait, -1, 0), span(Activity::wait, 1, 2),
                        span(Activity::wait, 4, 4.5), span(Activity::wait, 4, 6),
                        span(Activity::forward, 0, 8), span(Activity::wait, 8, 9)},
      std::vector<Span>{span(Activity::all_gather, -2, 1.5), span(Activity::all_gather, 3, 7)});
  CHECK(times.compute == 5);
  CHECK(times.communication == 7.5);
  CHECK(times.exposed == 4.5);
}

TEST_CASE("Timeline: a step is added up from its own spans", "[profile]") {
  test::HandClock clock;
  Timeline timeline(clock);
  timeline.record(Lane::compute, {1, 2, 0, Activity::forward});
  clock.now = 200;
  timeline.restart();
  for (int step = 1; step <= 2; ++step) {
    timeline.begin_step(step);
    {
      const Recording recording(&timeline, Lane::compute, Activity::forward, 7);
      clock.now += step;
    }
    clock.now += 0.5;
    timeline.end_step();
  }
  const std::vector<Span> spans = timeline.lane(Lane::compute).kept();
  REQUIRE(spans.size() == 4);
  CHECK(spans[0].begin == 0);
  CHECK(spans[0].end == 1);
  CHECK(spans[0].detail == 7);
  CHECK(spans[3].activity == Activity::step);
  CHECK(spans[3].begin == 1.5);
  CHECK(spans[3].end == 4);
  const std::vector<StepTimes> steps = timeline.steps().kept();
  REQUIRE(steps.size() == 2);
  CHECK(steps[1].step == 2);
  CHECK(steps[1].compute == 2);
  CHECK(steps[1].seconds == 2.5);
  CHECK(timeline.total().step == 2);
  CHECK(timeline.total().compute == 3);
}

TEST_CASE("Timeline: keeps the last spans", "[profile]") {
  test::HandClock clock;
  Timeline timeline(clock, 4);
  for (int i = 0; i < 10; ++i) timeline.record(Lane::data, {0, 0, i, Activity::load});
  const std::vector<Span> spans = timeline.lane(Lane::data).kept();
  REQUIRE(spans.size() == 4);
  CHECK(spans.front().detail == 6);
  CHECK(spans.back().detail == 9);
  CHECK(timeline.lane(Lane::data).first_kept() == 6);
}

TEST_CASE("Timeline: nothing is recorded without one", "[profile]") {
  CHECK_NOTHROW(Recording(nullptr, Lane::compute, Activity::forward));
}
