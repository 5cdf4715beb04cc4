#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Logits of R rows over V columns, f32, cut into pieces of columns: each piece is a dense matrix
/// of R rows, one after the other, all of `piece_columns` columns save the last. So each piece can
/// be one product's dense output.
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
  /// (R, width(piece)), dense. Without memory it describes.
  [[nodiscard]] TensorView piece(std::int64_t piece) const {
    return values.part(rows() * first_column(piece), {rows(), width(piece)});
  }
};

}  // namespace dstrain::ops
