#include "runtime/data/sample_split.h"

#include <array>
#include <cmath>

#include "runtime/base/error.h"

namespace dstrain::data {

SampleSplit split_samples(std::int64_t samples, std::span<const double> weights) {
  std::array<std::int64_t, 4> begins{};
  DSTRAIN_CHECK(weights.size() + 1 == begins.size(), "{} weights", weights.size());
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double part = weights[i] / sum * static_cast<double>(samples);
    begins.at(i + 1) = begins.at(i) + static_cast<std::int64_t>(std::nearbyint(part));
  }
  const std::int64_t excess = begins.back() - samples;
  for (std::size_t i = 1; i < begins.size(); ++i) begins.at(i) -= excess;
  return {{0, begins[1]}, {begins[1], begins[2] - begins[1]}};
}

}  // namespace dstrain::data
