#include "runtime/ops/cuda/attention_rules.h"

namespace dstrain::ops::gpu {

void DistanceBias::find_starts(const RelativeBuckets& of) {
  if (!of.active()) return;
  rows = static_cast<std::int32_t>(of.both_ways ? of.count / 2 : of.count);
  DSTRAIN_CHECK(rows <= rows_most, "GPUs know biases of up to {} distances, not {}", rows_most,
                rows);
  // Rows grow with the distance, so binary search finds each start.
  for (std::int32_t row = 1; row < rows; ++row) {
    std::int64_t below = starts[static_cast<std::size_t>(row - 1)];
    std::int64_t reached = of.distance_max + 1;
    while (reached - below > 1) {
      const std::int64_t middle = below + (reached - below) / 2;
      (of.row_of(-middle) >= row ? reached : below) = middle;
    }
    starts[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(reached);
  }
}

}  // namespace dstrain::ops::gpu
