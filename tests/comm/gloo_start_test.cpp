// Ranks that leave as soon as they are connected disturb none that is slower.
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <catch2/catch.hpp>

#include "runtime/comm/gloo/gloo_transport.h"
#include "tests/comm/memory_store.h"
#include "tests/support/ranks.h"
#include "tests/support/skip.h"

using namespace dstrain;

namespace {

/// Ranks that have connected and left.
class Departures {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++number_;
    changed_.notify_all();
  }
  /// Waits for so many, or until it is plain that they do not leave yet.
  void wait_for(int number) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return number_ >= number; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int number_ = 0;
};

/// What a rank hears when the others have left, if they can.
class SlowStore final : public comm::Store {
 public:
  SlowStore(comm::Store& store, Departures& others) : store_(store), others_(others) {}
  void set(const std::string& key, std::string_view value) override { store_.set(key, value); }
  std::string get(const std::string& key, double timeout_seconds) override {
    std::string value = store_.get(key, timeout_seconds);
    others_.wait_for(2);
    return value;
  }
  std::int64_t add(const std::string& key, std::int64_t delta) override {
    return store_.add(key, delta);
  }

 private:
  comm::Store& store_;
  Departures& others_;
};

}  // namespace

TEST_CASE("Gloo: a rank may leave when the others have heard less", "[comm]") {
  if (!comm::has_gloo()) test::skip("this build has no gloo (libgloo-dev)");
  const int slow = GENERATE(0, 1, 2);
  CAPTURE(slow);
  test::MemoryStore store;
  Departures others;
  SlowStore late(store, others);
  REQUIRE_NOTHROW(test::run_ranks(3, [&](int rank) {
    comm::Store& own = rank == slow ? static_cast<comm::Store&>(late) : store;
    comm::make_gloo_transport(own, {.rank = rank, .size = 3});
    others.add();
  }));
}
