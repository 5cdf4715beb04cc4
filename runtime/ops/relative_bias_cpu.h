#pragma once
#include <cstdint>

#include "runtime/ops/relative_buckets.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// For kernels: the biases of all heads by distance, in memory that the caller has, so that those
/// of a row of scores lie side by side.
class RelativeBias {
 public:
  /// Of scores: positions of their rows and columns, and which of both are the keys.
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
  /// Floats that the biases of so many heads take.
  static std::int64_t numel(const Scores& scores, std::int64_t heads) {
    return heads * scores.distances();
  }
  /// Takes them from a table (count, H), times `factor`.
  void fill(const TensorView& table, float factor) const;

  [[nodiscard]] const float* of(std::int64_t head) const {
    return memory_ + head * scores_.distances();
  }
  /// Where that of a score is among those of its head; those of the row lie from there on.
  [[nodiscard]] std::int64_t place(std::int64_t row, std::int64_t column) const {
    return column - row + scores_.rows - 1;
  }
  /// sums (count) = values by distance of one head, added up in the order of their places.
  void sum_rows(const float* by_distance, float* sums) const;

 private:
  [[nodiscard]] std::int64_t table_row(std::int64_t place) const;

  RelativeBuckets buckets_;
  Scores scores_;
  float* memory_ = nullptr;  ///< (H, distances)
};

}  // namespace dstrain::ops
