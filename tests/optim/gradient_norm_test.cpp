#include "runtime/optim/gradient_norm.h"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/base/philox.h"

namespace optim = dstrain::optim;

namespace {

std::vector<float> random_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = dstrain::normal_float({.seed = 7, .index = i}) * std::exp2f(float(i % 40) - 20);
  }
  return values;
}

}  // namespace

TEST_CASE("add_squares: cuts on block boundaries leave the bits alone", "[optim][norm]") {
  const std::vector<float> values = random_values(200'003);
  optim::ExactSum whole;
  optim::add_squares(values, whole);
  const auto cut = GENERATE(0U, 64U, 6400U, 65536U, 199'936U);
  const std::span<const float> all(values);
  optim::ExactSum parts;
  optim::add_squares(all.subspan(cut), parts);
  optim::add_squares(all.first(cut), parts);
  CHECK(parts.value() == whole.value());
  long double reference = 0;
  for (const float value : values) reference += static_cast<long double>(value) * value;
  CHECK(whole.value() == Approx(static_cast<double>(reference)).epsilon(1e-14));
}

TEST_CASE("clip_scale: only norms over the limit are scaled", "[optim][norm]") {
  CHECK(optim::clip_scale(0.5, 1.0) == 1.0);
  CHECK(optim::clip_scale(4.0, 0.0) == 1.0);
  CHECK(optim::clip_scale(4.0, 1.0) == Approx(0.25).epsilon(1e-6));
}

TEST_CASE("clip_scale: the norm counts for 1e-6 more", "[optim][norm]") {
  CHECK(optim::clip_scale(1e-6, 1e-6) == 0.5);
  CHECK(optim::clip_scale(3e-6, 1e-6) == Approx(0.25).epsilon(1e-12));
  CHECK(optim::clip_scale(1.0, 1.0) == 1.0 / (1.0 + 1e-6));
  CHECK(optim::clip_scale(0.0, 1.0) == 1.0);
}
