#include "runtime/profile/timeline.h"

#include "runtime/profile/recording.h"
#include "tests/profile/hand_clock.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::profile;

namespace {

Span span(Activity activity, double begin, double end) {
  return {begin, end, 0, activity};
}

}  // namespace

TEST_CASE("StepTimes: communication during work is hidden", "[profile]") {
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
  const StepTimes times = add_up({compute, row.communication});
  CHECK(times.compute == 7);
  CHECK(times.communication == row.busy);
  CHECK(times.exposed == row.exposed);
}

TEST_CASE("StepTimes: without overlap all communication is exposed", "[profile]") {
  const std::vector<Span> compute{span(Activity::forward, 0, 1), span(Activity::backward, 2, 3)};
  const std::vector<Span> communication{span(Activity::all_gather, 1, 2),
                                        span(Activity::reduce_scatter, 3, 5)};
  const StepTimes times = add_up({compute, communication});
  CHECK(times.communication == 3);
  CHECK(times.exposed == 3);
}

TEST_CASE("StepTimes: waiting within work is no work", "[profile]") {
  const std::vector<Span> compute{span(Activity::wait, -1, 0),   span(Activity::wait, 1, 2),
                                  span(Activity::wait, 4, 4.5),  span(Activity::wait, 4, 6),
                                  span(Activity::forward, 0, 8), span(Activity::wait, 8, 9)};
  const std::vector<Span> communication{span(Activity::all_gather, -2, 1.5),
                                        span(Activity::all_gather, 3, 7)};
  const StepTimes times = add_up({compute, communication});
  CHECK(times.compute == 5);
  CHECK(times.communication == 7.5);
  CHECK(times.exposed == 4.5);
}

TEST_CASE("StepTimes: an optimizer step has its own share of what a disk did", "[profile]") {
  const std::vector<Span> compute{
      span(Activity::backward, 0, 4), span(Activity::wait, 4, 6), span(Activity::update, 6, 8),
      span(Activity::optimizer_step, 4, 10), span(Activity::step, 0, 10)};
  const std::vector<Span> reads{span(Activity::read, 1, 2), span(Activity::read, 3, 6)};
  const std::vector<Span> writes{span(Activity::write, 5, 7), span(Activity::write, 9, 12)};
  const OptimizerTimes times =
      add_up({.compute = compute, .reads = reads, .writes = writes}).optimizer;
  CHECK(times.seconds == 6);
  CHECK(times.update == 2);
  CHECK(times.reading == 2);
  CHECK(times.writing == 3);
}

TEST_CASE("StepTimes: disks are described only if they are used", "[profile]") {
  StepTimes times{.compute = 2, .optimizer = {.seconds = 1, .update = 0.5}};
  CHECK(describe(times, 2) ==
        "compute 1000 ms, communication 0 ms (0 ms exposed), optimizer step 500 ms");
  times.reading = times.optimizer.reading = 0.75;
  CHECK(describe(times, 1) ==
        "compute 2000 ms, communication 0 ms (0 ms exposed), optimizer step 1000 ms (update 500 "
        "ms, disk reads 750 ms, writes 0 ms)");
  times.early_updates = 0.25;
  CHECK_THAT(describe(times, 1),
             Catch::Matchers::EndsWith(", early updates 250 ms (disk reads 750 ms, "
                                       "writes 0 ms of the whole step)"));
}

TEST_CASE("Timeline: operations that overlap are one span", "[profile]") {
  test::HandClock clock;
  Timeline timeline(clock);
  timeline.begin(Lane::disk_reads, Activity::read, 1);
  clock.now += 1;
  timeline.begin(Lane::disk_reads, Activity::read, 2);
  clock.now += 1;
  timeline.end(Lane::disk_reads);
  clock.now += 1;
  timeline.end(Lane::disk_reads);
  clock.now += 1;
  timeline.begin(Lane::disk_reads, Activity::read, 4);
  timeline.end(Lane::disk_reads);
  const std::vector<Span> spans = timeline.spans(Lane::disk_reads);
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].begin == 0);
  CHECK(spans[0].end == 3);
  CHECK(spans[0].detail == 3);
  CHECK(spans[1].begin == 4);
  CHECK(spans[1].detail == 4);
}

TEST_CASE("Timeline: a step has its part of a write that goes on", "[profile]") {
  test::HandClock clock;
  Timeline timeline(clock);
  timeline.begin(Lane::disk_writes, Activity::write, 1);
  clock.now += 1;
  timeline.restart();
  clock.now += 1;
  for (int step = 1; step <= 2; ++step) {
    timeline.begin_step(step);
    clock.now += 2;
    if (step == 2) timeline.end(Lane::disk_writes);
    clock.now += 1;
    timeline.end_step();
  }
  const std::vector<StepTimes> steps = timeline.steps().kept();
  CHECK(steps[0].writing == 3);
  CHECK(steps[1].writing == 2);
  CHECK(timeline.spans(Lane::disk_writes).at(0).begin == 0);
  CHECK(timeline.spans(Lane::disk_writes).at(0).end == 6);
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
  const std::vector<Span> spans = timeline.spans(Lane::compute);
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
  const std::vector<Span> spans = timeline.spans(Lane::data);
  REQUIRE(spans.size() == 4);
  CHECK(spans.front().detail == 6);
  CHECK(spans.back().detail == 9);
  CHECK(timeline.spans_lost(Lane::data) == 6);
}

TEST_CASE("Timeline: without a timeline nothing is recorded", "[profile]") {
  CHECK_NOTHROW(Recording(nullptr, Lane::compute, Activity::forward));
}
