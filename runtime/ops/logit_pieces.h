#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// f32 logits of R rows over V columns, cut into pieces of columns. Each piece is a dense matrix of
/// R rows and, except the last, `piece_columns` columns, so that it can be one product's output.
/// Pieces are contiguous.
struct LogitPieces {
  TensorView values;  ///< (R, V): the memory of all pieces
  std::int64_t piece_columns = 0;

  [[nodiscard]] std::int64_t rows() const { return values.shape()[0]; }
  [[nodiscard]] std::int64_t columns() const { return values.shape()[1]; }
  [[nodiscard]] std::int64_t count() const {
    return (columns() + piece_columns - 1) / piece_columns;
  }
  [[nodiscard]] std::int64_t first_column(std::int64_t piece) const {
    return piece * piece_columns;
  }
  [[nodiscard]] std::int64_t width(std::int64_t piece) const {
    return std::min(piece_columns, columns() - first_column(piece));
  }
  /// (R, width(piece)), dense. Without memory it only describes.
  [[nodiscard]] TensorView piece(std::int64_t piece) const {
    return values.part(rows() * first_column(piece), {rows(), width(piece)});
  }
};

}  // namespace dstrain::ops
