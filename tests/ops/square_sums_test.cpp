#include "runtime/ops/square_sums.h"

#include <catch2/catch.hpp>

#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

std::vector<double> sums_of(std::span<const float> values) {
  const auto count = ops::square_sum_count(static_cast<std::int64_t>(values.size()));
  std::vector<double> sums(static_cast<std::size_t>(count), -1.0);
  Stream stream(Stream::Mode::inline_on_caller);
  ops::square_sums(values, sums, stream);
  return sums;
}

TEST_CASE("Square sums: each block has its own sum", "[ops][square_sums]") {
  const std::int64_t numel = GENERATE(0, 1, 63, 64, 65, 1000, 70000);
  const std::vector<float> values = test::random_values(numel, 1);
  std::vector<double> expected(static_cast<std::size_t>(ops::square_sum_count(numel)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    expected[i / 64] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  CHECK(test::difference(sums_of(values), expected, {1e-12, 1e-14}) == "");
}

TEST_CASE("Square sums: a block has the same bits wherever it lies", "[ops][square_sums]") {
  const std::vector<float> values = test::random_values(70000, 2);
  const std::vector<double> whole = sums_of(values);
  for (std::size_t block = 0; block < whole.size(); block += 97) {
    const std::size_t count = std::min<std::size_t>(64, values.size() - block * 64);
    CHECK(sums_of(std::span(values).subspan(block * 64, count))[0] == whole[block]);
  }
}

TEST_CASE("Square sums: lanes and tree are as promised", "[ops][square_sums]") {
  const std::vector<float> values = test::random_values(64, 3, 1e10F);
  double lane[8] = {};
  for (std::size_t i = 0; i < 64; ++i) {
    lane[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  const double expected =
      ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  CHECK(sums_of(values)[0] == expected);
}

}  // namespace
}  // namespace dstrain
