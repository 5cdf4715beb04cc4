// The timeline of a rank whose device does what it is given later.

#include "runtime/device/cpu_stream.h"
#include "runtime/profile/recording.h"
#include "tests/profile/hand_clock.h"
#include "tests/profile/hand_stream_clock.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::profile;

namespace {

/// The host's clock begins at 100; times below are those of the timeline, which begins there.
struct Rank {
  Rank() { timeline.restart(); }
  /// Of the device's next stamps.
  void reach(const std::vector<double>& times) {
    for (const double time : times) device.reached[seen++] = 100 + time;
  }
  test::HandClock clock;
  test::HandStreamClock device;
  CpuStream compute{CpuStream::Mode::inline_on_caller};
  Timeline timeline{clock, Timeline::Device{device, compute}};
  StreamClock::Stamp seen = 0;
};

/// Begin and end.
using Times = std::pair<double, double>;

std::vector<Times> times_of(const Timeline& timeline, Lane lane) {
  std::vector<Times> times;
  for (const Span& span : timeline.spans(lane)) times.emplace_back(span.begin, span.end);
  return times;
}

}  // namespace

TEST_CASE("Timeline of a device: a span appears when the device has finished it", "[profile]") {
  Rank rank;
  { const Recording work(&rank.timeline, rank.compute, Lane::compute, Activity::forward, 7); }
  rank.clock.now += 1;
  rank.timeline.catch_up();
  CHECK(rank.device.waited == StreamClock::Stamp{1});
  CHECK(rank.timeline.spans(Lane::compute).empty());
  rank.reach({5, 8});
  rank.timeline.catch_up();
  const std::vector<Span> spans = rank.timeline.spans(Lane::compute);
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].begin == 5);
  CHECK(spans[0].end == 8);
  CHECK(spans[0].detail == 7);
  CHECK(spans[0].activity == Activity::forward);
  CHECK(rank.timeline.clock_error_seconds() == 0.25);
}

TEST_CASE("Timeline of a device: the host's work has its own lane", "[profile]") {
  Rank rank;
  for (const Lane lane : {Lane::compute, Lane::communication, Lane::data, Lane::early_updates}) {
    const Recording recording(&rank.timeline, lane, Activity::wait);
  }
  CHECK(rank.timeline.spans(Lane::host).size() == 2);
  CHECK(rank.timeline.spans(Lane::compute).empty());
  CHECK(rank.timeline.spans(Lane::communication).empty());
  CHECK(rank.timeline.spans(Lane::data).size() == 1);
  CHECK(rank.timeline.spans(Lane::early_updates).size() == 1);
}

TEST_CASE("Timeline of a device: a step is added up by the device's times", "[profile]") {
  Rank rank;
  const auto record = [&](Lane lane, Activity activity) {
    const Recording recording(&rank.timeline, rank.compute, lane, activity);
  };
  const auto on_host = [&](Activity activity, double begin, double end) {
    rank.timeline.record(Lane::communication, {begin, end, 0, activity});
  };
  for (const int step : {1, 2}) {
    rank.timeline.begin_step(step);
    record(Lane::compute, Activity::forward);
    record(Lane::communication, Activity::all_gather);
    record(Lane::compute, Activity::wait);
    record(Lane::compute, Activity::optimizer_step);
    on_host(Activity::exchange, step, step + 0.5);  // the host is ahead
    rank.timeline.end_step();
  }
  CHECK(rank.device.compared == 2);
  CHECK(rank.timeline.steps().pushed() == 0);
  //         step  forward  gather   wait     update    end
  rank.reach({0.5, 1, 3, 2.5, 6, 3, 6, 6, 7, 7.5});
  rank.timeline.catch_up();
  REQUIRE(rank.timeline.steps().pushed() == 1);
  rank.reach({7.5, 8, 10, 7, 9, 10, 10, 10, 12, 12});
  rank.timeline.catch_up();
  REQUIRE(rank.timeline.steps().pushed() == 2);
  const StepTimes first = rank.timeline.steps()[0];
  CHECK(first.step == 1);
  CHECK(first.seconds == 7);
  CHECK(first.compute == 2);
  CHECK(first.communication == 4.5);  // both exchanges lie in the device's first step
  CHECK(first.exposed == 3);
  CHECK(first.optimizer.seconds == 1);
  const StepTimes second = rank.timeline.steps()[1];
  CHECK(second.seconds == 4.5);
  CHECK(second.compute == 2);
  CHECK(second.communication == 1.5);  // what lies in the step
  CHECK(second.exposed == 0.5);
  CHECK(rank.timeline.total().step == 2);
  CHECK(times_of(rank.timeline, Lane::compute).back() == Times{7.5, 12});
}

TEST_CASE("Timeline of a device: the host's updates count once beside the device's", "[profile]") {
  Rank rank;
  rank.timeline.begin_step(1);
  { const Recording work(&rank.timeline, rank.compute, Lane::compute, Activity::backward); }
  rank.timeline.record(Lane::compute, {3, 6, 0, Activity::update});
  rank.timeline.end_step();
  rank.reach({0, 1, 4, 8});
  rank.timeline.catch_up();
  const StepTimes times = rank.timeline.steps()[0];
  CHECK(times.compute == 5);
  CHECK(times.optimizer.update == 3);
}

TEST_CASE("Timeline of a device: a lane does not go back where clocks are compared", "[profile]") {
  Rank rank;
  for (const int step : {1, 2}) {
    rank.timeline.begin_step(step);
    { const Recording work(&rank.timeline, rank.compute, Lane::compute, Activity::forward); }
    rank.timeline.end_step();
  }
  rank.reach({1, 1, 2, 3});
  rank.reach({2.75, 2.875, 4, 5});
  rank.timeline.catch_up();
  CHECK(times_of(rank.timeline, Lane::compute) ==
        std::vector<Times>{{1, 2}, {1, 3}, {3, 4}, {3, 5}});
}

TEST_CASE("Timeline of a device: finished spans are collected even without the end of a step",
          "[profile]") {
  Rank rank;
  for (int i = 0; i < 5000; ++i) {
    { const Recording work(&rank.timeline, rank.compute, Lane::compute, Activity::forward, i); }
    rank.reach({2.0 * i, 2.0 * i + 1});
  }
  CHECK_FALSE(rank.device.waited);
  CHECK(rank.timeline.spans(Lane::compute).size() >= 3000);
}
