#include "runtime/device/event.h"

#include <future>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/device/cpu_stream.h"

namespace dstrain {
namespace {

using Mode = CpuStream::Mode;

std::vector<int> zero_to(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// A stream or a queue of the host, for what holds for all crossings.
class Side {
 public:
  explicit Side(bool host) : host_(host) {}
  template <class Task>
  void give(Task&& task) {
    host_ ? queue_.run(std::forward<Task>(task)) : stream_.launch(std::forward<Task>(task));
  }
  [[nodiscard]] Event record() { return host_ ? Event::record(queue_) : Event::record(stream_); }
  void wait_for(const Event& event) { host_ ? event.wait_on(queue_) : event.wait_on(stream_); }
  void synchronize() { host_ ? queue_.synchronize() : stream_.synchronize(); }

 private:
  bool host_;
  CpuStream stream_{Mode::worker_thread};
  HostQueue queue_{HostQueue::Mode::worker_thread};
};

}  // namespace

TEST_CASE("Streams: two of them overlap and one does not", "[device][stream]") {
  CpuStream one(Mode::inline_on_caller);
  CpuStream other(Mode::inline_on_caller);
  CHECK_FALSE(Streams(one).overlap());
  CHECK_FALSE(Streams(one, one).overlap());
  CHECK(Streams(one, other).overlap());
}

TEST_CASE("Event: work after it sees the work before it", "[device][event]") {
  Side before(GENERATE(false, true));
  Side after(GENERATE(false, true));
  std::promise<void> open;
  int value = 0;
  int seen = -1;
  before.give([&, gate = open.get_future().share()] {
    gate.wait();
    value = 42;
  });
  const Event done = before.record();
  after.wait_for(done);
  after.give([&] { seen = value; });
  open.set_value();
  after.synchronize();
  CHECK(seen == 42);
}

TEST_CASE("Event: two sides can hand a value to and fro", "[device][event]") {
  Side ping(GENERATE(false, true));
  Side pong(GENERATE(false, true));
  std::vector<int> turns;  // unguarded: only the events order the two
  for (int i = 0; i < 200; ++i) {
    ping.give([&turns, i] { turns.push_back(2 * i); });
    pong.wait_for(ping.record());
    pong.give([&turns, i] { turns.push_back(2 * i + 1); });
    ping.wait_for(pong.record());
  }
  ping.synchronize();
  pong.synchronize();
  CHECK(turns == zero_to(400));
}

TEST_CASE("Event: a failure comes out of the waits for it", "[device][event]") {
  Side broken(GENERATE(false, true));
  Side waiting(GENERATE(false, true));
  broken.give([] { throw std::runtime_error("broken"); });
  const Event event = broken.record();
  CpuStream inline_stream(Mode::inline_on_caller);
  CHECK_THROWS_WITH(event.wait_on(inline_stream), "broken");
  waiting.wait_for(event);
  bool went_on = false;
  waiting.give([&] { went_on = true; });
  CHECK_THROWS_WITH(waiting.synchronize(), "broken");
  CHECK_FALSE(went_on);
  CHECK_THROWS_WITH(broken.synchronize(), "broken");
  waiting.wait_for(broken.record());  // nothing has failed since
  CHECK_NOTHROW(waiting.synchronize());
}

TEST_CASE("Event: an inline stream waits on the caller", "[device][event]") {
  CpuStream worker(Mode::worker_thread);
  CpuStream inline_stream(Mode::inline_on_caller);
  int value = 0;
  worker.launch([&] { value = 7; });
  Event::record(worker).wait_on(inline_stream);
  CHECK(value == 7);
}

TEST_CASE("Event: one that has passed costs no wait and can be waited for again",
          "[device][event]") {
  CpuStream first(Mode::inline_on_caller);
  CpuStream second(Mode::worker_thread);
  const Event passed = Event::record(first);
  const Event copy = passed;
  passed.wait_on(second);
  copy.wait_on(second);
  passed.wait_on(first);
  CHECK_NOTHROW(second.synchronize());
}

TEST_CASE("Event: outlives the streams it came from", "[device][event]") {
  auto source = std::make_unique<CpuStream>(Mode::worker_thread);
  const Event event = Event::record(*source);
  source.reset();
  CpuStream target(Mode::worker_thread);
  event.wait_on(target);
  CHECK_NOTHROW(target.synchronize());
}

}  // namespace dstrain
