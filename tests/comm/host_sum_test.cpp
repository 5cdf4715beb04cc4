#include "runtime/comm/host_sum.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/typed_values.h"

using namespace dstrain;
using test::half_bits;
using test::half_value;

namespace {

using Halves = std::vector<std::uint16_t>;

bool same_half(std::uint16_t left, std::uint16_t right, DType dtype) {
  const bool nan = std::isnan(half_value(left, dtype));
  return nan ? std::isnan(half_value(right, dtype)) : left == right;
}

/// Every half, from `first` on and `stride` apart.
Halves all_halves(std::uint32_t first, std::uint32_t stride) {
  Halves halves(65'536);
  for (std::uint32_t i = 0; i < halves.size(); ++i) {
    halves[i] = static_cast<std::uint16_t>(first + i * stride);
  }
  return halves;
}

/// The first that is not ((x_0 + x_1) + x_2) + ..., or how many there are.
std::size_t first_wrong(const std::vector<Halves>& terms, const Halves& sum, DType dtype) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    std::uint16_t expected = terms[0][i];
    for (std::size_t r = 1; r < terms.size(); ++r) {
      expected = half_bits(half_value(expected, dtype) + half_value(terms[r][i], dtype), dtype);
    }
    if (!same_half(sum[i], expected, dtype)) return i;
  }
  return sum.size();
}

}  // namespace

TEST_CASE("host sum: any two halves are added in f32 and rounded", "[comm]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const auto stride = GENERATE(1U, 3U, 40'503U, 65'535U);
  CAPTURE(name_of(dtype), stride);
  for (std::uint32_t first = 0; first < 65'536; first += 4093) {
    const std::vector<Halves> terms{all_halves(0, 1), all_halves(first, stride)};
    Halves sum(terms[0].size());
    const std::array places{reinterpret_cast<const std::byte*>(terms[0].data()),
                            reinterpret_cast<const std::byte*>(terms[1].data())};
    comm::add_in_rank_order(places, {sum.data(), dtype, {std::ssize(sum)}});
    REQUIRE(first_wrong(terms, sum, dtype) == sum.size());
  }
}

/// Of lengths that are no multiples of a line or a block, to places where none begins.
TEST_CASE("host sum: terms of any number and length written either way", "[comm]") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const auto writes = GENERATE(comm::Writes::cached, comm::Writes::streamed);
  const std::uint32_t count = GENERATE(1U, 2U, 3U, 5U);
  const std::int64_t numel = GENERATE(0, 1, 7, 33, 2049, 10'001);
  const std::int64_t offset = GENERATE(0, 1, 13);
  const bool in_place = GENERATE(false, true);
  CAPTURE(name_of(dtype), writes == comm::Writes::streamed, count, numel, offset, in_place);
  std::vector<Halves> terms;
  std::vector<const std::byte*> places;
  for (std::uint32_t r = 0; r < count; ++r) {
    terms.push_back(all_halves(r * 977, 5));
    terms.back().resize(static_cast<std::size_t>(numel));
    places.push_back(reinterpret_cast<const std::byte*>(terms.back().data()));
  }
  constexpr std::uint16_t untouched = 0x1234;
  Halves memory(static_cast<std::size_t>(offset + numel + 40), untouched);
  const std::span sum =
      std::span(memory).subspan(static_cast<std::size_t>(offset), terms[0].size());
  if (in_place) {
    std::ranges::copy(terms.back(), sum.begin());
    places.back() = reinterpret_cast<const std::byte*>(sum.data());
  }
  comm::add_in_rank_order(places, {sum.data(), dtype, {numel}}, writes);
  CHECK(first_wrong(terms, {sum.begin(), sum.end()}, dtype) == sum.size());
  std::ranges::fill(sum, untouched);
  CHECK(std::ranges::count(memory, untouched) == std::ssize(memory));
}
