#include "runtime/base/philox.h"

#include <cmath>
#include <numbers>

namespace dstrain {

float normal_float(const RandomKey& key) {
  const auto words = philox(key);
  const double radius_draw = (static_cast<double>(words[0]) + 1.0) * 0x1.0p-32;  // (0, 1]
  const double angle_draw = static_cast<double>(words[1]) * 0x1.0p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(radius_draw)) *
                            std::cos(2.0 * std::numbers::pi * angle_draw));
}

std::uint64_t uniform_below(const RandomKey& key, std::uint64_t bound) {
  const auto words = philox(key);
  const std::uint64_t draw = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<std::uint64_t>((static_cast<__uint128_t>(draw) * bound) >> 64);
}

}  // namespace dstrain
