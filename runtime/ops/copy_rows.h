#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Columns [first, first + count) of a dense matrix (R, C), as a strided view (R, count).
TensorView columns(const TensorView& matrix, std::int64_t first, std::int64_t count);

/// target = source, of equal shape (R, C) and dtype; rows may be strided. Asynchronous on `stream`.
void copy_rows(const TensorView& source, const TensorView& target, StreamView stream);

}  // namespace dstrain::ops
