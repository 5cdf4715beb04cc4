#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Logits of R rows over V columns, f32, cut into pieces of columns: each piece is a dense matrix
/// of R rows, one after the other, all of `piece_columns` columns save the last. So each piece can
/// be one product's dense output. Their gradient takes their place: in f32 that of a piece lies
/// where the piece was. In bf16 that of a piece lies where the piece before it was, and that of the
/// first one beside them, so that a row can be written while others of its piece are still read.
struct LogitPieces {
  TensorView values;  ///< (R, V): the memory of all pieces
  std::int64_t piece_columns = 0;
  TensorView rounded{};  ///< (R, width(0)) bf16: for the gradient of the first piece; empty: f32

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
  /// That of the gradient of the logits, (R, width(piece)). Likewise.
  [[nodiscard]] TensorView gradient(std::int64_t piece) const {
    if (rounded.shape().rank() == 0) return this->piece(piece);
    if (piece == 0) return rounded;
    return this->piece(piece - 1).reused(DType::bf16, {rows(), width(piece)});
  }
};

}  // namespace dstrain::ops
