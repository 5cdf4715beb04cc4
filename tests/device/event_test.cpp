#include "runtime/device/event.h"

#include <array>
#include <functional>
#include <future>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/deferred_device.h"

namespace dstrain {
namespace {

using Mode = CpuStream::Mode;

std::vector<int> zero_to(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

enum class Kind { host_queue, cpu_stream, device_stream };

/// Each way across.
std::vector<std::pair<Kind, Kind>> crossings() {
  constexpr std::array kinds{Kind::host_queue, Kind::cpu_stream, Kind::device_stream};
  std::vector<std::pair<Kind, Kind>> pairs;
  for (const Kind from : kinds) {
    for (const Kind to : kinds) pairs.emplace_back(from, to);
  }
  return pairs;
}

/// A stream or a queue of the host, for what holds for all crossings.
class Side {
 public:
  Side(Kind kind, test::DeferredDevice& device)
      : kind_(kind), device_stream_(device.make_stream()) {}
  void give(const std::function<void()>& task) {
    switch (kind_) {
      case Kind::host_queue:
        return queue_.run(task);
      case Kind::cpu_stream:
        return stream_.launch(task);
      case Kind::device_stream:
        return test::DeferredDevice::launch(*device_stream_, "a task",
                                            [task](CpuStream&) { task(); });
    }
  }
  [[nodiscard]] Event record() {
    return kind_ == Kind::host_queue ? Event::record(queue_) : Event::record(stream());
  }
  void wait_for(const Event& event) {
    kind_ == Kind::host_queue ? event.wait_on(queue_) : event.wait_on(stream());
  }
  void synchronize() { kind_ == Kind::host_queue ? queue_.synchronize() : stream().synchronize(); }

 private:
  StreamView stream() {
    return kind_ == Kind::cpu_stream ? StreamView(stream_) : StreamView(*device_stream_);
  }

  Kind kind_;
  CpuStream stream_{Mode::worker_thread};
  HostQueue queue_{HostQueue::Mode::worker_thread};
  std::unique_ptr<Stream> device_stream_;
};

}  // namespace

TEST_CASE("Streams: work overlaps on two streams but not on one", "[device][stream]") {
  CpuStream one(Mode::inline_on_caller);
  CpuStream other(Mode::inline_on_caller);
  CHECK_FALSE(Streams(one).overlap());
  CHECK_FALSE(Streams(one, one).overlap());
  CHECK(Streams(one, other).overlap());
}

TEST_CASE("Event: work after it sees the work before it", "[device][event]") {
  test::DeferredDevice device(1);
  const auto [from, to] = GENERATE(from_range(crossings()));
  Side before(from, device);
  Side after(to, device);
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

TEST_CASE("Event: two sides can pass a value back and forth", "[device][event]") {
  test::DeferredDevice device(2);
  const auto [from, to] = GENERATE(from_range(crossings()));
  Side ping(from, device);
  Side pong(to, device);
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

TEST_CASE("Event: waiting for failed work throws its failure", "[device][event]") {
  test::DeferredDevice device(3);
  const auto [from, to] = GENERATE(from_range(crossings()));
  Side broken(from, device);
  Side waiting(to, device);
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

TEST_CASE("Event: waiting for a past event is free and can be repeated", "[device][event]") {
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
