#include "runtime/device/stream.h"

#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

namespace dstrain {
namespace {

using Mode = Stream::Mode;

std::vector<int> zero_to(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

TEST_CASE("Stream: an inline stream runs at once on the caller", "[device][stream]") {
  Stream stream(Mode::inline_on_caller);
  std::thread::id where;
  stream.launch([&] { where = std::this_thread::get_id(); });
  CHECK(where == std::this_thread::get_id());
  CHECK_THROWS_WITH(stream.launch([] { throw std::runtime_error("here"); }), "here");
  CHECK_NOTHROW(stream.synchronize());
}

TEST_CASE("Stream: a worker runs on one thread of its own", "[device][stream]") {
  Stream stream(Mode::worker_thread);
  std::vector<std::thread::id> threads(2);
  stream.launch([&] { threads[0] = std::this_thread::get_id(); });
  stream.synchronize();
  stream.launch([&] { threads[1] = std::this_thread::get_id(); });
  stream.synchronize();
  CHECK(threads[0] != std::this_thread::get_id());
  CHECK(threads[0] == threads[1]);
}

TEST_CASE("Stream: work runs in the order of its launch", "[device][stream]") {
  const Mode mode = GENERATE(Mode::inline_on_caller, Mode::worker_thread);
  Stream stream(mode);
  std::vector<int> seen;
  constexpr int count = 1000;
  for (int i = 0; i < count; ++i) {
    stream.launch([&seen, i] { seen.push_back(i); });
  }
  stream.synchronize();
  CHECK(seen == zero_to(count));
}

TEST_CASE("Stream: launching on a worker does not wait for the work", "[device][stream]") {
  Stream stream(Mode::worker_thread);
  std::promise<void> open;
  bool ran = false;
  stream.launch([&ran, gate = open.get_future().share()] {
    gate.wait();
    ran = true;
  });
  open.set_value();  // reached although the task waits for it
  stream.synchronize();
  CHECK(ran);
}

TEST_CASE("Stream: a worker keeps its first exception and drops what follows", "[device][stream]") {
  Stream stream(Mode::worker_thread);
  int later = 0;
  stream.launch([] { throw std::runtime_error("first"); });
  stream.launch([] { throw std::runtime_error("second"); });
  stream.launch([&] { ++later; });
  CHECK_THROWS_WITH(stream.synchronize(), "first");
  CHECK(later == 0);

  stream.launch([&] { ++later; });
  CHECK_NOTHROW(stream.synchronize());
  CHECK(later == 1);
}

TEST_CASE("Stream: releases are done after a failure too", "[device][stream]") {
  Stream stream(Mode::worker_thread);
  bool released = false;
  stream.launch([] { throw std::runtime_error("first"); });
  stream.launch_always([&] { released = true; });
  stream.launch_always([] { throw std::runtime_error("second"); });
  CHECK_THROWS_WITH(stream.synchronize(), "first");
  CHECK(released);
}

TEST_CASE("Stream: the destructor finishes the work", "[device][stream]") {
  int done = 0;
  {
    Stream stream(Mode::worker_thread);
    for (int i = 0; i < 100; ++i) stream.launch([&] { ++done; });
  }
  CHECK(done == 100);
}

TEST_CASE("Stream: a destructor with an exception nobody asked for is quiet", "[device][stream]") {
  Stream stream(Mode::worker_thread);
  stream.launch([] { throw std::runtime_error("lost"); });
}

TEST_CASE("Stream: what a task holds may use the stream as it goes", "[device][stream]") {
  Stream stream(Mode::worker_thread);
  bool released = false;
  struct Holder {
    Stream& stream;
    bool& released;
    Holder(Stream& s, bool& r) : stream(s), released(r) {}
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    Holder(Holder&&) = delete;
    Holder& operator=(Holder&&) = delete;
    ~Holder() {
      stream.launch_always([&flag = released] { flag = true; });
    }
  };
  stream.launch([holder = std::make_shared<Holder>(stream, released)] { (void)holder; });
  stream.synchronize();  // the holder is gone now, its release launched
  stream.synchronize();
  CHECK(released);
}

TEST_CASE("Stream: a look at a failure leaves it for synchronize", "[device][stream]") {
  Stream stream(Mode::worker_thread);
  CHECK_NOTHROW(stream.check());
  int later = 0;
  stream.launch([] { throw std::runtime_error("first"); });
  stream.wait_until_idle();
  CHECK_THROWS_WITH(stream.check(), "first");
  stream.launch([&] { ++later; });
  stream.wait_until_idle();
  CHECK(later == 0);
  CHECK_THROWS_WITH(stream.synchronize(), "first");
  CHECK_NOTHROW(stream.check());
}

TEST_CASE("Streams: two of them overlap and one does not", "[device][stream]") {
  Stream one(Mode::inline_on_caller);
  Stream other(Mode::inline_on_caller);
  CHECK_FALSE(Streams(one).overlap());
  CHECK_FALSE(Streams(one, one).overlap());
  CHECK(Streams(one, other).overlap());
}

TEST_CASE("Event: work after it sees the work before it", "[device][event]") {
  Stream copy(Mode::worker_thread);
  Stream compute(Mode::worker_thread);
  std::promise<void> open;
  int value = 0;
  int seen = -1;
  copy.launch([&, gate = open.get_future().share()] {
    gate.wait();
    value = 42;
  });
  const Event copied = Event::record(copy);
  copied.wait_on(compute);
  compute.launch([&] { seen = value; });
  open.set_value();
  compute.synchronize();
  CHECK(seen == 42);
}

TEST_CASE("Event: two streams can hand a value to and fro", "[device][event]") {
  Stream ping(Mode::worker_thread);
  Stream pong(Mode::worker_thread);
  std::vector<int> turns;  // unguarded: only the events order the two
  for (int i = 0; i < 200; ++i) {
    ping.launch([&turns, i] { turns.push_back(2 * i); });
    Event::record(ping).wait_on(pong);
    pong.launch([&turns, i] { turns.push_back(2 * i + 1); });
    Event::record(pong).wait_on(ping);
  }
  ping.synchronize();
  pong.synchronize();
  CHECK(turns == zero_to(400));
}

TEST_CASE("Event: an inline stream waits on the caller", "[device][event]") {
  Stream worker(Mode::worker_thread);
  Stream inline_stream(Mode::inline_on_caller);
  int value = 0;
  worker.launch([&] { value = 7; });
  Event::record(worker).wait_on(inline_stream);
  CHECK(value == 7);
}

TEST_CASE("Event: one that has passed costs no wait and can be waited for again",
          "[device][event]") {
  Stream first(Mode::inline_on_caller);
  Stream second(Mode::worker_thread);
  const Event passed = Event::record(first);
  const Event copy = passed;
  passed.wait_on(second);
  copy.wait_on(second);
  passed.wait_on(first);
  CHECK_NOTHROW(second.synchronize());
}

TEST_CASE("Event: a stream that failed still reaches it", "[device][event]") {
  Stream broken(Mode::worker_thread);
  Stream waiting(Mode::worker_thread);
  broken.launch([] { throw std::runtime_error("broken"); });
  Event::record(broken).wait_on(waiting);
  bool went_on = false;
  waiting.launch([&] { went_on = true; });
  waiting.synchronize();
  CHECK(went_on);
  CHECK_THROWS_WITH(broken.synchronize(), "broken");
}

TEST_CASE("Event: outlives the streams it came from", "[device][event]") {
  auto source = std::make_unique<Stream>(Mode::worker_thread);
  const Event event = Event::record(*source);
  source.reset();
  Stream target(Mode::worker_thread);
  event.wait_on(target);
  CHECK_NOTHROW(target.synchronize());
}

}  // namespace dstrain
