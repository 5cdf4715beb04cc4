#pragma once
#include <cstdint>

#include "runtime/ops/relative_buckets.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// The biases of all heads by distance, in the caller's memory, for kernels. The biases of a row of
/// scores are contiguous.
class RelativeBias {
 public:
  /// The scores: positions of their rows and columns, and which of the two are the keys.
  struct Scores {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool rows_are_keys = false;
    [[nodiscard]] std::int64_t distances() const { return rows + columns; }
  };
  RelativeBias() = default;
  RelativeBias(const RelativeBuckets& buckets, const Scores& scores, float* memory)
      : buckets_(buckets), scores_(scores), memory_(memory) {}
  [[nodiscard]] bool active() const { return buckets_.active(); }
  /// Returns the floats that the biases of `heads` heads take.
  static std::int64_t numel(const Scores& scores, std::int64_t heads) {
    return heads * scores.distances();
  }
  /// Fills them from a table (count, H), times `factor`.
  void fill(const TensorView& table, float factor) const;

  [[nodiscard]] const float* of(std::int64_t head) const {
    return memory_ + head * scores_.distances();
  }
  /// Returns the index of a score's bias among those of its head; those of the row follow.
  [[nodiscard]] std::int64_t place(std::int64_t row, std::int64_t column) const {
    return column - row + scores_.rows - 1;
  }
  /// sums (count) = values by distance of one head, added in index order.
  void sum_rows(const float* by_distance, float* sums) const;

 private:
  [[nodiscard]] std::int64_t table_row(std::int64_t place) const;

  RelativeBuckets buckets_;
  Scores scores_;
  float* memory_ = nullptr;  ///< (H, distances)
};

}  // namespace dstrain::ops
