#include "runtime/ops/dropout.h"

#include <array>
#include <cmath>

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

/// A site and what it draws from.
struct Site {
  float rate = 0;
  std::uint64_t seed = 42;
  std::array<std::int64_t, 2> counter{3, 0};
  ops::DropoutSite site() { return {rate, seed, HostView(counter, {2})}; }
};

Site site(float rate, std::int64_t first_sample = 0) {
  return {.rate = rate, .counter = {3, first_sample}};
}

/// The multipliers of `sequences` samples of 3 x 35 elements.
std::vector<float> mask(Site where, std::int64_t sequences) {
  std::vector<float> values(static_cast<std::size_t>(sequences * 3 * 35), 1.0F);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const HostView view(values, {sequences, 3, 35});
  ops::dropout({.input = view, .residual = {}, .output = view, .site = where.site()}, stream);
  return values;
}

TEST_CASE("Dropout: element e takes its word of the Philox block it names", "[ops][dropout]") {
  const std::int64_t first_sample = GENERATE(0, 5, (1 << 24) - 2);
  const std::vector<float> values = mask(site(0.3F, first_sample), 2);
  for (std::uint64_t e = 0; e < values.size(); ++e) {
    const std::uint64_t sample = static_cast<std::uint64_t>(first_sample) + e / 105;
    const std::uint64_t element = e % 105;
    const std::uint64_t block = (sample << 40U) + element / 64 * 16 + element % 16;
    const auto words = philox({42, RandomPurpose::dropout, 3, block});
    const bool dropped = static_cast<double>(words[element % 64 / 16]) <
                         std::floor(static_cast<double>(0.3F) * 0x1p32);
    CHECK(values[e] == (dropped ? 0.0F : 1.0F / (1.0F - 0.3F)));
  }
}

TEST_CASE("Dropout: the share of dropped elements is the rate", "[ops][dropout]") {
  const float rate = GENERATE(0.1F, 0.5F, 0.9F);
  constexpr std::int64_t sequences = 1000;
  const std::vector<float> values = mask(site(rate), sequences);
  const auto dropped = std::count(values.begin(), values.end(), 0.0F);
  const auto count = static_cast<double>(values.size());
  const double deviation = std::sqrt(count * static_cast<double>(rate * (1 - rate)));
  CHECK(std::abs(static_cast<double>(dropped) - count * static_cast<double>(rate)) < 4 * deviation);
}

TEST_CASE("Dropout: a sample keeps its mask in any micro batch", "[ops][dropout]") {
  const std::vector<float> together = mask(site(0.4F, 10), 4);
  std::vector<float> apart;
  for (std::int64_t sample = 10; sample < 14; ++sample) {
    const std::vector<float> one = mask(site(0.4F, sample), 1);
    apart.insert(apart.end(), one.begin(), one.end());
  }
  CHECK(together == apart);
}

TEST_CASE("Dropout: steps and places have masks of their own", "[ops][dropout]") {
  Site other = site(0.5F);
  other.counter[0] = 4;
  CHECK(mask(other, 2) != mask(site(0.5F), 2));
  other = site(0.5F);
  other.seed = ops::dropout_site_seed(42, 0, 0);
  CHECK(mask(other, 2) != mask(site(0.5F), 2));
  CHECK(ops::dropout_site_seed(42, 0, 0) != ops::dropout_site_seed(42, 0, 1));
  CHECK(ops::dropout_site_seed(42, 0, 0) != ops::dropout_site_seed(42, 1, 0));
}

TEST_CASE("Dropout: a mask needs a counter", "[ops][dropout]") {
  std::vector<float> values(12, 1.0F);
  const HostView view(values, {1, 3, 4});
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  CHECK_THROWS_WITH(
      ops::dropout({.input = view, .residual = {}, .output = view, .site = {.rate = 0.5F}}, stream),
      Catch::Matchers::ContainsSubstring("counter is missing"));
}

TEST_CASE("Dropout: adds the residual and is the identity at rate 0", "[ops][dropout]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  test::TypedValues input(test::random_values(2 * 5 * 20, 1), dtype);
  test::TypedValues residual(test::random_values(2 * 5 * 20, 2), dtype);
  test::TypedValues output(test::random_values(2 * 5 * 20, 3), dtype);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const Shape shape{2, 5, 20};
  ops::dropout(
      {.input = input.view(shape), .residual = {}, .output = output.view(shape), .site = {}},
      stream);
  CHECK(output.read() == input.read());
  Site where = site(0.25F);
  ops::dropout({.input = input.view(shape),
                .residual = residual.view(shape),
                .output = output.view(shape),
                .site = where.site()},
               stream);
  std::vector<float> mask(input.size(), 1.0F);
  const HostView mask_view(mask, shape);
  ops::dropout({.input = mask_view, .residual = {}, .output = mask_view, .site = where.site()},
               stream);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    CHECK(output.read()[i] == test::rounded(residual.read()[i] + input.read()[i] * mask[i], dtype));
  }
}

}  // namespace
}  // namespace dstrain
