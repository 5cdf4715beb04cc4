#include "runtime/numeric/philox.h"

#include <cmath>
#include <set>

#include "tests/support/catch.h"

namespace dstrain {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// The key whose counter and key words are these.
RandomKey key_of(const Words& counter, std::uint32_t key_low, std::uint32_t key_high) {
  return {.seed = (std::uint64_t{key_high} << 32) | key_low,
          .purpose = static_cast<RandomPurpose>(counter[3]),
          .stream = counter[2],
          .index = (std::uint64_t{counter[1]} << 32) | counter[0]};
}

}  // namespace

// The generator's published known answers for philox4x32 with 10 rounds.
TEST_CASE("Philox: known answers", "[base][philox]") {
  CHECK(philox(key_of({0, 0, 0, 0}, 0, 0)) ==
        Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox(key_of({ones, ones, ones, ones}, ones, ones)) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(key_of({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0)) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Philox: every part of the key changes the block", "[base][philox]") {
  const RandomKey key{.seed = 5, .purpose = RandomPurpose::dropout, .stream = 7, .index = 9};
  std::set<Words> blocks{philox(key)};
  for (int bit = 0; bit < 64; ++bit) {
    RandomKey other = key;
    other.seed ^= std::uint64_t{1} << bit;
    blocks.insert(philox(other));
    other = key;
    other.index ^= std::uint64_t{1} << bit;
    blocks.insert(philox(other));
  }
  for (int bit = 0; bit < 32; ++bit) {
    RandomKey other = key;
    other.stream ^= std::uint32_t{1} << bit;
    blocks.insert(philox(other));
  }
  for (const RandomPurpose purpose :
       {RandomPurpose::init, RandomPurpose::shuffle, RandomPurpose::sample}) {
    RandomKey other = key;
    other.purpose = purpose;
    blocks.insert(philox(other));
  }
  CHECK(blocks.size() == 1 + 64 + 64 + 32 + 3);
}

TEST_CASE("Philox: uniform floats fill the half-open unit interval", "[base][philox]") {
  CHECK(uniform_float(0) == 0.0F);
  CHECK(uniform_float(0xffffffff) < 1.0F);
  CHECK(uniform_float(0xffffffff) == 1.0F - 0x1.0p-24F);
  CHECK(uniform_float(0x80000000) == 0.5F);
}

TEST_CASE("Philox: normal numbers have the moments of the standard normal", "[base][philox]") {
  constexpr int count = 200'000;
  const auto seed = GENERATE(std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xdeadbeefcafe});
  CAPTURE(seed);
  std::array<double, 5> moments{};
  for (std::uint64_t i = 0; i < count; ++i) {
    const double x = normal_float({.seed = seed, .index = i});
    for (std::size_t power = 1; power < moments.size(); ++power) {
      moments[power] += std::pow(x, static_cast<double>(power)) / count;
    }
  }
  // Standard errors of the means of x, x^2, x^3, x^4: sqrt of 1, 2, 15, 96 over the count.
  const double sigmas = 5.0 / std::sqrt(static_cast<double>(count));
  CHECK(std::abs(moments[1]) < sigmas);
  CHECK(std::abs(moments[2] - 1) < sigmas * std::sqrt(2.0));
  CHECK(std::abs(moments[3]) < sigmas * std::sqrt(15.0));
  CHECK(std::abs(moments[4] - 3) < sigmas * std::sqrt(96.0));
}

TEST_CASE("Philox: normal numbers are unrelated to their neighbours", "[base][philox]") {
  constexpr std::size_t count = 200'000;
  std::vector<float> values(count);
  dstrain::normal_floats({.seed = 11}, values);
  for (const std::size_t lag : {1U, 2U, 3U, 4U}) {
    double product = 0;
    double squares = 0;
    for (std::size_t i = lag; i < count; ++i) {
      product += double{values[i]} * double{values[i - lag]} / count;
      squares += double{values[i]} * double{values[i]} * values[i - lag] * values[i - lag] / count;
    }
    CAPTURE(lag);
    CHECK(std::abs(product) < 5.0 / std::sqrt(double{count}));
    CHECK(std::abs(squares - 1) < 5.0 * std::sqrt(8.0 / count));
  }
}

TEST_CASE("Philox: a range of normal numbers is part of the whole", "[base][philox]") {
  std::vector<float> whole(50);
  dstrain::normal_floats({.seed = 2, .index = 1000}, whole);
  const auto begin = GENERATE(0U, 1U, 2U, 3U, 4U, 7U);
  std::vector<float> part(13);
  dstrain::normal_floats({.seed = 2, .index = 1000 + begin}, part);
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + begin));
  CHECK(normal_float({.seed = 2, .index = 1000 + begin}) == whole[begin]);
}

TEST_CASE("Philox: uniform_below stays below and is even", "[base][philox]") {
  const auto bound = GENERATE(std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3},
                              std::uint64_t{10}, std::uint64_t{97});
  CAPTURE(bound);
  constexpr std::uint64_t draws_per_value = 2000;
  std::vector<std::uint64_t> counts(bound);
  for (std::uint64_t i = 0; i < bound * draws_per_value; ++i) {
    const std::uint64_t drawn =
        uniform_below({.seed = 3, .purpose = RandomPurpose::shuffle, .index = i}, bound);
    REQUIRE(drawn < bound);
    ++counts[drawn];
  }
  for (const std::uint64_t count : counts) {
    CHECK(std::abs(static_cast<double>(count) - draws_per_value) <
          6 * std::sqrt(static_cast<double>(draws_per_value)));
  }
}

TEST_CASE("Philox: uniform_below reaches both ends of a wide range", "[base][philox]") {
  constexpr std::uint64_t bound = ~std::uint64_t{0};
  bool low = false;
  bool high = false;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const std::uint64_t drawn = uniform_below({.seed = 4, .index = i}, bound);
    low = low || drawn < bound / 4;
    high = high || drawn > bound / 4 * 3;
  }
  CHECK(low);
  CHECK(high);
}

}  // namespace dstrain
