// What a profiler from outside is shown of a timeline.
#include "runtime/device/cpu_stream.h"
#include "runtime/profile/recording.h"
#include "tests/profile/hand_clock.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::profile;

namespace {

/// Writes all down.
class HandRanges final : public HostRanges {
 public:
  void push(const char* name) noexcept override { seen += std::string("<") + name; }
  void pop() noexcept override { seen += ">"; }
  Id begin(const char* name) noexcept override {
    seen += std::string("[") + name;
    return ++last_;
  }
  void end(Id range) noexcept override { seen += range == last_ ? "]" : "?"; }
  std::string seen;

 private:
  Id last_ = 0;
};

}  // namespace

TEST_CASE("Timeline: a profiler is shown steps and what they record", "[profile]") {
  test::HandClock clock;
  HandRanges ranges;
  Timeline timeline(clock, 1);
  CpuStream stream{CpuStream::Mode::inline_on_caller};
  CHECK(beside_device(&timeline) == nullptr);
  { const Recording unseen(&timeline, Lane::compute, Activity::norm); }
  timeline.show(ranges, {"wte", "h.0"});
  CHECK(beside_device(&timeline) == &timeline);
  timeline.begin_step(7);
  {
    const Recording unit(&timeline, stream, Lane::compute, Activity::backward, 1);
    const Recording wait(&timeline, Lane::host, Activity::wait);
  }
  timeline.end_step();
  CHECK(ranges.seen == "[step 7<backward h.0<wait>>]");
  CHECK(timeline.steps().kept().size() == 1);
}

TEST_CASE("Timeline: a step that was stopped ends as the next begins", "[profile]") {
  test::HandClock clock;
  HandRanges ranges;
  Timeline timeline(clock, 1);
  timeline.show(ranges, {});
  timeline.begin_step(1);
  timeline.begin_step(2);
  timeline.end_step();
  CHECK(ranges.seen == "[step 1][step 2]");
}
