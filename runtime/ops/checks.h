#pragma once
#include "runtime/base/units.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Throws Error{internal} that names `what` unless `view` has memory, is dense, and has `dtype` and
/// `shape`.
void require_tensor(const TensorView& view, DType dtype, const Shape& shape, const char* what);

/// Does the same for f32.
void require_f32(const TensorView& view, const Shape& shape, const char* what);

/// Does the same for bf16 or f16.
void require_half(const TensorView& view, const Shape& shape, const char* what);

/// Does the same for a view of any rank whose elements fill a (rows, columns) matrix.
void require_matrix(
    const TensorView& view, DType dtype, std::int64_t rows, std::int64_t columns, const char* what);

/// Does the same, but rows may be strided.
void require_strided(
    const TensorView& view, DType dtype, std::int64_t rows, std::int64_t columns, const char* what);

/// Throws Error{internal} unless `view` is `needed` bytes of workspace (u8) or more.
void require_workspace(const TensorView& view, Bytes needed);

/// Returns the dtype of an activation or a weight: f32, bf16 or f16. Throws Error{internal} that
/// names `what` for another one.
DType element_dtype(const TensorView& view, const char* what);

/// Returns the last extent of `view`, and the number of rows of that size.
std::int64_t columns_of(const TensorView& view);
std::int64_t rows_of(const TensorView& view);
/// Returns its elements as a dense (rows, columns) matrix; an empty view stays empty.
TensorView as_matrix(const TensorView& view);

}  // namespace dstrain::ops
