#include "runtime/numeric/parallel_for.h"

#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace dstrain {

TEST_CASE("parallel_for: visits every index once", "[base][parallel_for]") {
  const std::int64_t count = GENERATE(0, 1, 2, 3, 7, 64, 1001);
  CAPTURE(count);
  std::vector<int> visits(static_cast<std::size_t>(count));
  parallel_for(count, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
  CHECK(visits == std::vector<int>(static_cast<std::size_t>(count), 1));
}

TEST_CASE("parallel_for: a nested loop visits every index", "[base][parallel_for]") {
  constexpr std::size_t rows = 5;
  constexpr std::size_t columns = 9;
  std::vector<int> visits(rows * columns);
  parallel_for(rows, [&](std::int64_t row) {
    parallel_for(columns, [&](std::int64_t column) {
      ++visits[static_cast<std::size_t>(row) * columns + static_cast<std::size_t>(column)];
    });
  });
  CHECK(visits == std::vector<int>(rows * columns, 1));
}

TEST_CASE("parallel_for: there is at least one thread", "[base][parallel_for]") {
  CHECK(compute_threads() >= 1);
}

TEST_CASE("parallel_for: denormals become zero in every compute thread", "[base][parallel_for]") {
  prepare_compute_threads(compute_threads());
  const volatile float smallest = std::numeric_limits<float>::min();
  std::vector<float> halves(static_cast<std::size_t>(compute_threads()) * 8, 1.0F);
  parallel_for(static_cast<std::int64_t>(halves.size()),
               [&](std::int64_t i) { halves[static_cast<std::size_t>(i)] = smallest * 0.5F; });
  CHECK(std::accumulate(halves.begin(), halves.end(), 0.0F) == 0.0F);
}

TEST_CASE("parallel_for: a helper thread runs its loops by itself", "[base][parallel_for]") {
  const int before = compute_threads();
  int threads = 0;
  bool alone = true;
  std::thread helper([&] {
    become_helper_thread();
    threads = compute_threads();
    const std::thread::id self = std::this_thread::get_id();
    parallel_for(100, [&](std::int64_t) { alone = alone && std::this_thread::get_id() == self; });
  });
  helper.join();
  CHECK(threads == 1);
  CHECK(alone);
  CHECK(compute_threads() == before);
}

}  // namespace dstrain
