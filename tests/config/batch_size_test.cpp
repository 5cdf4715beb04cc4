#include "runtime/config/batch_size.h"

#include "tests/config/support.h"
#include "tests/support/catch.h"

using dstrain::config::Batch;
using dstrain::config::BatchGiven;
using dstrain::config::solve_batch;
using dstrain::test::contains;

namespace {

constexpr std::int64_t absent = -1000;

struct Row {
  std::int64_t train, micro, steps, world;
  Batch expected;
  std::string error;  // empty: it works
};

BatchGiven given(const Row& row) {
  const auto size = [](std::int64_t value) {
    return value == absent ? std::nullopt : std::optional(value);
  };
  return {size(row.train), size(row.micro), size(row.steps)};
}

const std::string neither =
    "Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided";

}  // namespace

TEST_CASE("BatchSize: every row of DeepSpeed's table", "[config][batch]") {
  const Row row = GENERATE(values<Row>({
      {32, 16, 1, 2, {32, 16, 1}, ""},
      {32, 8, 2, 2, {32, 8, 2}, ""},
      {32, 16, absent, 2, {32, 16, 1}, ""},
      {32, 8, absent, 2, {32, 8, 2}, ""},
      {32, absent, 1, 2, {32, 16, 1}, ""},
      {32, absent, 2, 2, {32, 8, 2}, ""},
      {absent, 16, 1, 2, {32, 16, 1}, ""},
      {absent, 8, 2, 2, {32, 8, 2}, ""},
      {absent, 16, absent, 2, {32, 16, 1}, ""},
      {32, absent, absent, 2, {32, 16, 1}, ""},
      {33, 17, 2, 2, {}, "33 != 17 * 2 * 2"},
      {32, 18, 1, 2, {}, "32 != 18 * 1 * 2"},
      {33, 17, absent, 2, {}, "Gradient accumulation steps: 0"},
      {32, 18, absent, 2, {}, "Gradient accumulation steps: 0"},
      {33, absent, 2, 2, {}, "33 != 8 * 2 * 2"},
      {absent, absent, 2, 2, {}, neither},
      {absent, absent, 1, 2, {}, neither},
      {absent, absent, absent, 2, {}, neither},
      {64, absent, absent, 1, {64, 64, 1}, ""},
      {1, absent, absent, 2, {}, "Micro batch size per gpu: 0"},
      {7, absent, absent, 2, {}, "7 != 3 * 1 * 2"},
      {0, absent, absent, 1, {}, "Train batch size: 0"},
      {-4, absent, absent, 1, {}, "Train batch size: -4"},
      {8, 3, absent, 1, {}, "8 != 3 * 2 * 1"},
      {16, 4, absent, 8, {}, "Gradient accumulation steps: 0"},
      // Here the size that the user wrote is named, not the one that follows from it.
      {absent, 0, absent, 1, {}, "Micro batch size per gpu: 0"},
      {32, 16, -1, 1, {}, "Gradient accumulation steps: -1"},
      {absent, 1LL << 40, 1LL << 40, 2, {}, "too large"},
  }));
  CAPTURE(row.train, row.micro, row.steps, row.world);
  const auto solved = solve_batch(given(row), row.world);
  REQUIRE(solved.ok() == row.error.empty());
  if (solved.ok()) {
    CHECK(solved.value().train == row.expected.train);
    CHECK(solved.value().micro == row.expected.micro);
    CHECK(solved.value().accumulation == row.expected.accumulation);
  } else {
    CAPTURE(solved.error());
    CHECK(contains(solved.error(), row.error));
  }
}

TEST_CASE("BatchSize: a problem for all world sizes is a problem for each", "[config][batch]") {
  struct Sizes {
    std::int64_t train, micro;
    std::vector<std::int64_t> steps;
  };
  std::vector<Sizes> rows;
  for (const std::int64_t train : {absent, 0L, 1L, 7L, 12L, 32L}) {
    for (const std::int64_t micro : {absent, 0L, 1L, 3L, 4L}) {
      rows.push_back({train, micro, {absent, 0, 1, 2, 5}});
    }
  }
  rows.front().steps = {0};  // with neither size the steps say nothing
  const Sizes row = GENERATE_COPY(from_range(rows));
  const std::int64_t steps = GENERATE_COPY(from_range(row.steps));
  CAPTURE(row.train, row.micro, steps);
  const BatchGiven sizes = given({row.train, row.micro, steps, 0, {}, ""});
  bool fits_somewhere = false;
  for (std::int64_t world = 1; world <= 32; ++world) {
    fits_somewhere = fits_somewhere || solve_batch(sizes, world).ok();
  }
  CHECK(dstrain::config::batch_problem_anywhere(sizes).empty() == fits_somewhere);
}
