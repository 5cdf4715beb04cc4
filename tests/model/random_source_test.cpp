#include "runtime/model/random_source.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

namespace dstrain::test {
namespace {

using Kind = model::ParameterInit::Kind;

const std::vector<model::ParameterSpec> random_specs{{"w", {300, 200}, {Kind::normal, 0.02F}},
                                                     {"v", {300, 200}, {Kind::normal, 0.02F}},
                                                     {"one", {5}, {Kind::ones, 0}},
                                                     {"zero", {5}, {Kind::zeros, 0}}};

std::vector<float> draw(std::uint64_t seed, std::size_t index) {
  std::vector<float> values(static_cast<std::size_t>(random_specs[index].shape.numel()), -1);
  model::RandomSource(seed, random_specs).read(random_specs[index], 0, values);
  return values;
}

}  // namespace

TEST_CASE("RandomSource: any range is the range of the whole", "[model][random]") {
  const std::vector<float> whole = draw(1, 0);
  const model::RandomSource source(1, random_specs);
  for (const auto& [begin, count] : std::vector<std::pair<int, int>>{
           {0, 1}, {59'999, 1}, {1, 16'384}, {16'383, 2}, {7, 50'000}, {60'000, 0}}) {
    CAPTURE(begin, count);
    std::vector<float> part(static_cast<std::size_t>(count));
    source.read(random_specs[0], begin, part);
    CHECK(std::equal(part.begin(), part.end(), whole.begin() + begin));
  }
}

TEST_CASE("RandomSource: numbers are normal with the asked deviation", "[model][random]") {
  const std::vector<float> values = draw(3, 0);
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto count = static_cast<double>(values.size());
  CHECK(std::abs(sum / count) < 4 * 0.02 / std::sqrt(count));  // four standard errors
  CHECK(std::sqrt(squares / count) == Catch::Approx(0.02).epsilon(0.015));
}

TEST_CASE("RandomSource: seeds and parameters differ", "[model][random]") {
  CHECK(draw(1, 0) == draw(1, 0));
  CHECK(draw(1, 0) != draw(2, 0));
  CHECK(draw(1, 0) != draw(1, 1));
}

TEST_CASE("RandomSource: constant parameters are constant", "[model][random]") {
  CHECK(draw(1, 2) == std::vector<float>(5, 1));
  CHECK(draw(1, 3) == std::vector<float>(5, 0));
}

}  // namespace dstrain::test
