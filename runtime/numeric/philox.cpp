#include "runtime/numeric/philox.h"

#include <cmath>
#include <numbers>

namespace dstrain {

namespace {

std::array<float, 4> normal_block(const RandomKey& key) {
  const auto words = philox(key);
  std::array<float, 4> normals{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const double radius_draw = (static_cast<double>(words[pair]) + 1.0) * 0x1.0p-32;  // (0, 1]
    const double radius = std::sqrt(-2.0 * std::log(radius_draw));
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(words[pair + 1]) * 0x1.0p-32;
    normals[pair] = static_cast<float>(radius * std::cos(angle));
    normals[pair + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return normals;
}

}  // namespace

void normal_floats(RandomKey key, std::span<float> values) {
  const std::uint64_t first = key.index;
  std::array<float, 4> normals{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t element = first + i;
    if (i == 0 || element % 4 == 0) {
      key.index = element / 4;
      normals = normal_block(key);
    }
    values[i] = normals[element % 4];
  }
}

float normal_float(const RandomKey& key) {
  float value = 0;
  normal_floats(key, {&value, 1});
  return value;
}

std::uint64_t uniform_below(const RandomKey& key, std::uint64_t bound) {
  const auto words = philox(key);
  const std::uint64_t draw = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<std::uint64_t>((static_cast<__uint128_t>(draw) * bound) >> 64);
}

}  // namespace dstrain
