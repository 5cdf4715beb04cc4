#include "runtime/device/host_queue.h"

#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/numeric/parallel_for.h"
#include "tests/support/catch.h"

namespace dstrain {

using Mode = HostQueue::Mode;

TEST_CASE("HostQueue: an inline one runs at once on the caller", "[device][queue]") {
  HostQueue queue(Mode::inline_on_caller);
  std::thread::id where;
  queue.run([&] { where = std::this_thread::get_id(); });
  CHECK(where == std::this_thread::get_id());
  CHECK_THROWS_WITH(queue.run([] { throw std::runtime_error("here"); }), "here");
  CHECK_NOTHROW(queue.synchronize());
}

TEST_CASE("HostQueue: a worker runs on one thread of its own", "[device][queue]") {
  HostQueue queue(Mode::worker_thread);
  std::vector<std::thread::id> threads(2);
  queue.run([&] { threads[0] = std::this_thread::get_id(); });
  queue.synchronize();
  queue.run([&] { threads[1] = std::this_thread::get_id(); });
  queue.synchronize();
  CHECK(threads[0] != std::this_thread::get_id());
  CHECK(threads[0] == threads[1]);
}

TEST_CASE("HostQueue: a helping thread loops alone and a computing one as its caller does",
          "[device][queue]") {
  const auto threads_of = [](Mode mode) {
    HostQueue queue(mode);
    int threads = 0;
    queue.run([&] { threads = compute_threads(); });
    queue.synchronize();
    return threads;
  };
  CHECK(threads_of(Mode::worker_thread) == 1);
  CHECK(threads_of(Mode::compute_thread) == compute_threads());
}

TEST_CASE("HostQueue: work runs in the order in which it was given", "[device][queue]") {
  const Mode mode = GENERATE(Mode::inline_on_caller, Mode::worker_thread, Mode::compute_thread);
  HostQueue queue(mode);
  std::vector<int> seen;
  constexpr int count = 1000;
  for (int i = 0; i < count; ++i) {
    queue.run([&seen, i] { seen.push_back(i); });
  }
  queue.synchronize();
  std::vector<int> expected(count);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(seen == expected);
}

TEST_CASE("HostQueue: giving work to a worker does not wait for the work", "[device][queue]") {
  HostQueue queue(Mode::worker_thread);
  std::promise<void> open;
  bool ran = false;
  queue.run([&ran, gate = open.get_future().share()] {
    gate.wait();
    ran = true;
  });
  open.set_value();  // reached although the task waits for it
  queue.synchronize();
  CHECK(ran);
}

TEST_CASE("HostQueue: a worker keeps its first exception and drops what follows",
          "[device][queue]") {
  HostQueue queue(Mode::worker_thread);
  int later = 0;
  queue.run([] { throw std::runtime_error("first"); });
  queue.run([] { throw std::runtime_error("second"); });
  queue.run([&] { ++later; });
  CHECK_THROWS_WITH(queue.synchronize(), "first");
  CHECK(later == 0);

  queue.run([&] { ++later; });
  CHECK_NOTHROW(queue.synchronize());
  CHECK(later == 1);
}

TEST_CASE("HostQueue: releases are done after a failure too", "[device][queue]") {
  HostQueue queue(Mode::worker_thread);
  bool released = false;
  queue.run([] { throw std::runtime_error("first"); });
  queue.run_always([&] { released = true; });
  queue.run_always([] { throw std::runtime_error("second"); });
  CHECK_THROWS_WITH(queue.synchronize(), "first");
  CHECK(released);
}

TEST_CASE("HostQueue: the destructor finishes the work", "[device][queue]") {
  int done = 0;
  {
    HostQueue queue(Mode::worker_thread);
    for (int i = 0; i < 100; ++i) queue.run([&] { ++done; });
  }
  CHECK(done == 100);
}

TEST_CASE("HostQueue: the destructor ignores an exception that was not fetched",
          "[device][queue]") {
  HostQueue queue(Mode::worker_thread);
  queue.run([] { throw std::runtime_error("lost"); });
}

TEST_CASE("HostQueue: destroying a task's captures may use the queue", "[device][queue]") {
  HostQueue queue(Mode::worker_thread);
  bool released = false;
  struct Holder {
    HostQueue& queue;
    bool& released;
    Holder(HostQueue& q, bool& r) : queue(q), released(r) {}
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    Holder(Holder&&) = delete;
    Holder& operator=(Holder&&) = delete;
    ~Holder() {
      queue.run_always([&flag = released] { flag = true; });
    }
  };
  queue.run([holder = std::make_shared<Holder>(queue, released)] { (void)holder; });
  queue.synchronize();  // the holder is gone now, its release launched
  queue.synchronize();
  CHECK(released);
}

TEST_CASE("HostQueue: checking for a failure leaves it for synchronize", "[device][queue]") {
  HostQueue queue(Mode::worker_thread);
  CHECK(queue.failure() == nullptr);
  int later = 0;
  queue.run([] { throw std::runtime_error("first"); });
  queue.wait_until_idle();
  CHECK_THROWS_WITH(std::rethrow_exception(queue.failure()), "first");
  queue.run([&] { ++later; });
  queue.wait_until_idle();
  CHECK(later == 0);
  CHECK_THROWS_WITH(queue.synchronize(), "first");
  CHECK(queue.failure() == nullptr);
}

}  // namespace dstrain
