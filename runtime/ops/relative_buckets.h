#pragma once
#include <cstdint>

namespace dstrain::ops {

/// Attention's bias by distance (Raffel et al. 2020): the score of a query at t and a key at s gets
/// the value of a table's row that stands for s - t. The near half of the rows stand for a distance
/// each, the others for ranges that widen by a common factor up to `distance_max`, the last of them
/// for all beyond too.
struct RelativeBuckets {
  std::int64_t count = 0;         ///< rows of the table; 0: there is no bias
  std::int64_t distance_max = 0;  ///< more than the rows that stand for one distance each
  bool both_ways = false;         ///< half of the rows are for keys behind the query, else all of
                                  ///< those are the row of distance 0
  [[nodiscard]] bool active() const { return count > 0; }
  /// The row for a key that lies `distance` behind its query, in [0, count). Logarithms are f32, as
  /// in transformers, so that the bounds of ranges are its.
  [[nodiscard]] std::int64_t row_of(std::int64_t distance) const;
};

}  // namespace dstrain::ops
