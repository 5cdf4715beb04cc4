#pragma once
#include "runtime/base/units.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Throws Error{internal} naming `what` unless `view` has memory, is of `dtype`, dense and of
/// `shape`.
void require_tensor(const TensorView& view, DType dtype, const Shape& shape, const char* what);

/// The same for f32.
void require_f32(const TensorView& view, const Shape& shape, const char* what);

/// The same for bf16 or f16.
void require_half(const TensorView& view, const Shape& shape, const char* what);

/// The same for a view of any rank whose elements fill a (rows, columns) matrix.
void require_matrix(
    const TensorView& view, DType dtype, std::int64_t rows, std::int64_t columns, const char* what);

/// The same, but its rows may be strided.
void require_strided(
    const TensorView& view, DType dtype, std::int64_t rows, std::int64_t columns, const char* what);

/// Throws Error{internal} unless `view` is `needed` bytes of workspace (u8) or more.
void require_workspace(const TensorView& view, Bytes needed);

/// The dtype of an activation or a weight: f32, bf16 or f16, else Error{internal} naming `what`.
DType element_dtype(const TensorView& view, const char* what);

/// The last extent of `view`, and how many rows of that size it has.
std::int64_t columns_of(const TensorView& view);
std::int64_t rows_of(const TensorView& view);
/// The dense (rows, columns) matrix of its elements; of an empty view, that.
TensorView as_matrix(const TensorView& view);

}  // namespace dstrain::ops
