#pragma once
#include <cstdint>

namespace dstrain::ops {

/// Attention's bias by distance (Raffel et al. 2020): the score of a query at t and a key at s gets
/// the value of the table row for s - t. The nearer half of the rows are for one distance each, the
/// others for ranges that widen by a constant factor up to `distance_max`; the last row also covers
/// all larger distances.
struct RelativeBuckets {
  std::int64_t count = 0;         ///< rows of the table; 0: there is no bias
  std::int64_t distance_max = 0;  ///< more than the number of rows for one distance each
  bool both_ways = false;         ///< half of the rows are for keys behind the query, else all of
                                  ///< those are the row of distance 0
  [[nodiscard]] bool active() const { return count > 0; }
  /// Returns the row for a key `distance` before its query, in [0, count). Logarithms are f32, as
  /// in transformers, so that the bounds of ranges are the same.
  [[nodiscard]] std::int64_t row_of(std::int64_t distance) const;
};

}  // namespace dstrain::ops
