#pragma once
#include <cstdint>
#include <vector>

#include "runtime/numeric/philox.h"

namespace dstrain::test {

/// `count` normal numbers, the same for the same seed.
inline std::vector<float> random_values(std::int64_t count, std::uint64_t seed, float stddev = 1) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = stddev * normal_float({.seed = seed, .index = i});
  }
  return values;
}

/// `count` integers in [0, bound).
inline std::vector<std::int32_t> random_tokens(std::int64_t count,
                                               std::uint64_t seed,
                                               std::uint64_t bound) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(uniform_below({.seed = seed, .index = i}, bound));
  }
  return tokens;
}

inline std::vector<double> to_double(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

}  // namespace dstrain::test
