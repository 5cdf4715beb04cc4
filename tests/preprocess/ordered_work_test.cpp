#include "runtime/preprocess/ordered_work.h"

#include <atomic>
#include <numeric>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain::preprocess {
namespace {

using Work = OrderedWork<int, int>;

int busy(int item) {
  // Items take differently long, so that threads overtake each other.
  std::minstd_rand random(static_cast<unsigned>(item));
  int sum = 0;
  for (int i = static_cast<int>(random() % 2000); i > 0; --i) sum += static_cast<int>(random() % 2);
  return sum >= 0 ? item * item : 0;
}

}  // namespace

TEST_CASE("OrderedWork: results come in the order of the items", "[preprocess][ordered]") {
  const int threads = GENERATE(1, 2, 7);
  const int items = GENERATE(0, 1, 500);
  int given = 0;
  std::vector<int> taken;
  const auto next = [&]() -> std::optional<int> {
    if (given == items) return std::nullopt;
    return given++;
  };
  const auto work = [](int& item) {
    return busy(item);
  };
  const auto take = [&](int& item, int& output) {
    taken.push_back(output == item * item ? item : -1);
  };
  Work(threads, {next, work, take}).run();
  std::vector<int> expected(static_cast<std::size_t>(items));
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(taken == expected);
}

TEST_CASE("OrderedWork: a failure is thrown after all earlier results", "[preprocess][ordered]") {
  const std::string where = GENERATE("next", "work", "take");
  const int threads = GENERATE(1, 4);
  int given = 0;
  std::vector<int> taken;
  const auto fail_in = [&](const std::string& step, int item) {
    if (step == where && item == 50) fail(ErrorCode::input, "{} of item 50", where);
  };
  const auto next = [&]() -> std::optional<int> {
    fail_in("next", given);
    return given++;
  };
  const auto work = [&](int& item) {
    fail_in("work", item);
    return busy(item);
  };
  const auto take = [&](int& item, int& /*output*/) {
    fail_in("take", item);
    taken.push_back(item);
  };
  CAPTURE(where, threads);
  CHECK(test::error_of([&] { Work(threads, {next, work, take}).run(); }) == where + " of item 50");
  CHECK(taken.size() == 50);
  CHECK(given <= 50 + 1 + 4 * threads);
}

}  // namespace dstrain::preprocess
