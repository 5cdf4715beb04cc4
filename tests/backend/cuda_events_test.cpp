// Points in streams of a GPU and in queues of the host, and waits for them.
#include <algorithm>
#include <future>
#include <stdexcept>

#include "runtime/device/event.h"
#include "runtime/device/host_queue.h"
#include "runtime/ops/add.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/catch.h"
#include "tests/support/test_gpu.h"

using namespace dstrain;

namespace {

constexpr std::int64_t numel = 1 << 20;

/// A tensor of the GPU, and memory of the host that it is copied from and to.
struct Sides {
  explicit Sides(Backend& gpu, bool pins = true)
      : pinned(gpu.pinned(host)),
        stream(gpu.make_stream(Backend::StreamUse::computing)),
        device(numel * 4, gpu.memory(), *stream),
        block(numel * 4, pins ? *pinned : static_cast<MemoryResource&>(host), *stream) {}
  [[nodiscard]] TensorView there() const { return device.block().cut(0, DType::f32, {numel}); }
  [[nodiscard]] HostView here() const { return block.block().cut(0, DType::f32, {numel}); }
  void set(float value) const { std::ranges::fill(here().as<float>(), value); }
  [[nodiscard]] bool all(float value) const {
    return std::ranges::all_of(here().as<float>(), [&](float each) { return each == value; });
  }
  HostMemory host;
  std::unique_ptr<MemoryResource> pinned;
  std::unique_ptr<Stream> stream;
  Buffer device;
  HostBuffer block;
};

}  // namespace

TEST_CASE("CUDA events: a stream waits for a queue of the host", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const bool pins = GENERATE(true, false);
  const Sides sides(*gpu, pins);
  HostQueue queue(HostQueue::Mode::worker_thread);
  sides.set(1);
  std::promise<void> open;
  queue.run([&, gate = open.get_future().share()] {
    gate.wait();
    sides.set(2);
  });
  const auto opener = std::async(std::launch::async, [&] { open.set_value(); });
  Event::record(queue).wait_on(*sides.stream);
  ops::convert(sides.here(), sides.there(), *sides.stream);
  ops::add(sides.there(), sides.there(), *sides.stream);
  ops::convert(sides.there(), sides.here(), *sides.stream);
  sides.stream->synchronize();
  CHECK(sides.all(4));
}

TEST_CASE("CUDA events: a stream and a queue pass a value back and forth", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const Sides sides(*gpu);
  HostQueue queue(HostQueue::Mode::worker_thread);
  sides.set(0);
  Event::record(queue).wait_on(*sides.stream);
  for (int i = 0; i < 100; ++i) {
    ops::convert(sides.here(), sides.there(), *sides.stream);
    ops::add(sides.there(), sides.there(), *sides.stream);
    ops::convert(sides.there(), sides.here(), *sides.stream);
    Event::record(*sides.stream).wait_on(queue);
    queue.run([&] { sides.set(sides.here().as<float>()[numel - 1] / 2 + 1); });
    Event::record(queue).wait_on(*sides.stream);
  }
  sides.stream->synchronize();
  queue.synchronize();
  CHECK(sides.all(100));
}

TEST_CASE("CUDA events: a stream waits for another", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const Sides sides(*gpu);
  const auto other = gpu->make_stream(Backend::StreamUse::beside_computing);
  sides.set(1);
  ops::convert(sides.here(), sides.there(), *sides.stream);
  for (int i = 0; i < 20; ++i) {
    Event::record(*sides.stream).wait_on(*other);
    ops::add(sides.there(), sides.there(), *other);
    Event::record(*other).wait_on(*sides.stream);
  }
  ops::convert(sides.there(), sides.here(), *sides.stream);
  sides.stream->synchronize();
  CHECK(sides.all(0x1p20F));
}

TEST_CASE("CUDA events: destroying a stream finishes its work", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const Sides sides(*gpu);
  sides.set(1);
  {
    const auto other = gpu->make_stream(Backend::StreamUse::beside_computing);
    ops::convert(sides.here(), sides.there(), *other);
    for (int i = 0; i < 3; ++i) ops::add(sides.there(), sides.there(), *other);
    ops::convert(sides.there(), sides.here(), *other);
  }
  CHECK(sides.all(8));
}

TEST_CASE("CUDA events: waiting for failed work throws its failure", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const Sides sides(*gpu);
  const auto other = gpu->make_stream(Backend::StreamUse::beside_computing);
  HostQueue broken(HostQueue::Mode::worker_thread);
  HostQueue after(HostQueue::Mode::worker_thread);
  broken.run([] { throw std::runtime_error("broken"); });
  Event::record(broken).wait_on(*sides.stream);
  Event::record(*sides.stream).wait_on(*other);
  Event::record(*other).wait_on(after);
  bool went_on = false;
  after.run([&] { went_on = true; });
  CHECK_THROWS_WITH(after.synchronize(), "broken");
  CHECK_FALSE(went_on);
  CHECK(sides.stream->failure() != nullptr);
  sides.set(7);
  ops::convert(sides.there(), sides.here(), *sides.stream);  // is dropped
  CHECK_THROWS_WITH(other->synchronize(), "broken");
  CHECK_THROWS_WITH(sides.stream->synchronize(), "broken");
  CHECK(sides.all(7));
  CHECK_THROWS_WITH(broken.synchronize(), "broken");
  ops::fill_zero(sides.there(), *sides.stream);
  ops::convert(sides.there(), sides.here(), *sides.stream);
  CHECK_NOTHROW(sides.stream->synchronize());
  CHECK(sides.all(0));
}

TEST_CASE("CUDA events: a stream waits for thousands of events of a queue", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const Sides sides(*gpu);
  HostQueue queue(HostQueue::Mode::worker_thread);
  std::promise<void> open;
  queue.run([gate = open.get_future().share()] { gate.wait(); });
  const auto opener = std::async(std::launch::async, [&] { open.set_value(); });
  for (int i = 0; i < 3000; ++i) Event::record(queue).wait_on(*sides.stream);
  CHECK_NOTHROW(sides.stream->synchronize());
}

TEST_CASE("CUDA stream clock: times are in host seconds and follow the order of the work",
          "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const Sides sides(*gpu);
  const SteadyClock host;
  const auto clock = gpu->make_stream_clock(host);
  REQUIRE(clock);
  for (int round = 0; round < 20; ++round) {
    clock->compare();
    const double before = host.now_seconds();
    const StreamClock::Stamp begin = clock->stamp(*sides.stream);
    ops::fill_zero(sides.there(), *sides.stream);
    const StreamClock::Stamp end = clock->stamp(*sides.stream);
    clock->wait_for(end);
    const double after = host.now_seconds();
    const std::optional<double> begun = clock->seconds(begin);
    const std::optional<double> ended = clock->seconds(end);
    REQUIRE((begun && ended));
    CAPTURE(round, before, *begun, *ended, after, clock->error_seconds());
    CHECK(*begun >= before - clock->error_seconds());
    CHECK(*begun <= *ended);
    // What the clocks drift apart after a comparison is known at the next one.
    CHECK(*ended <= after + clock->error_seconds() + (after - before) / 1000);
    CHECK(begin < 2);  // places are used again
    CHECK(end < 2);
  }
}

TEST_CASE("CUDA stream clock: points launched together are reported in order", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const Sides sides(*gpu);
  const SteadyClock host;
  const auto clock = gpu->make_stream_clock(host);
  std::vector<StreamClock::Stamp> stamps;
  for (int i = 0; i < 50; ++i) {
    ops::fill_zero(sides.there(), *sides.stream);
    stamps.push_back(clock->stamp(*sides.stream));
  }
  double last = 0;
  for (const StreamClock::Stamp stamp : stamps) {
    clock->wait_for(stamp);
    const std::optional<double> seconds = clock->seconds(stamp);
    REQUIRE(seconds);
    CHECK(*seconds >= last);
    last = *seconds;
  }
}

TEST_CASE("CUDA memory: an allocation that does not fit is refused", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  CHECK_THROWS_WITH(Buffer(Bytes{1} << 50, gpu->memory(), *stream),
                    Catch::Matchers::ContainsSubstring("cudaMalloc") &&
                        Catch::Matchers::ContainsSubstring("are free"));
  CHECK_NOTHROW(Buffer(1024, gpu->memory(), *stream));
}
