// Ranks that leave as soon as they are connected disturb none that is slower.
#include <poll.h>

#include <catch2/catch.hpp>

#include "runtime/comm/gloo/gloo_transport.h"
#include "tests/comm/memory_store.h"
#include "tests/support/ranks.h"
#include "tests/support/skip.h"

using namespace dstrain;

namespace {

/// What a rank hears of late.
class SlowStore final : public comm::Store {
 public:
  explicit SlowStore(comm::Store& store) : store_(store) {}
  void set(const std::string& key, std::string_view value) override { store_.set(key, value); }
  std::string get(const std::string& key, double timeout_seconds) override {
    std::string value = store_.get(key, timeout_seconds);
    ::poll(nullptr, 0, 200);
    return value;
  }
  std::int64_t add(const std::string& key, std::int64_t delta) override {
    return store_.add(key, delta);
  }

 private:
  comm::Store& store_;
};

}  // namespace

TEST_CASE("Gloo: a rank may leave when the others have heard less", "[comm]") {
  if (!comm::has_gloo()) test::skip("this build has no gloo (libgloo-dev)");
  const int slow = GENERATE(0, 1, 2);
  CAPTURE(slow);
  test::MemoryStore store;
  SlowStore late(store);
  REQUIRE_NOTHROW(test::run_ranks(3, [&](int rank) {
    comm::Store& own = rank == slow ? static_cast<comm::Store&>(late) : store;
    comm::make_gloo_transport(own, {.rank = rank, .size = 3});
  }));
}
