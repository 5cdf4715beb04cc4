#include "runtime/ops/relative_buckets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace dstrain::ops {

std::int64_t RelativeBuckets::row_of(std::int64_t distance) const {
  const std::int64_t rows = both_ways ? count / 2 : count;
  const std::int64_t first = both_ways && distance > 0 ? rows : 0;
  const std::int64_t away = both_ways ? std::abs(distance) : std::max<std::int64_t>(-distance, 0);
  const std::int64_t exact = rows / 2;
  if (away < exact) return first + away;
  const float range = std::log(static_cast<float>(away) / static_cast<float>(exact));
  const auto whole =
      static_cast<float>(std::log(static_cast<double>(distance_max) / static_cast<double>(exact)));
  const auto further = static_cast<std::int64_t>(range / whole * static_cast<float>(rows - exact));
  return first + std::min(exact + further, rows - 1);
}

}  // namespace dstrain::ops
