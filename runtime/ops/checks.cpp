#include "runtime/ops/checks.h"

namespace dstrain::ops {
namespace {

void require_type(const TensorView& view, DType dtype, const char* what) {
  DSTRAIN_CHECK(!view.empty() || view.numel() == 0, "{} is missing", what);
  DSTRAIN_CHECK(view.dtype() == dtype, "{} is {}, not {}", what, name_of(view.dtype()),
                name_of(dtype));
}

void require_dense(const TensorView& view, DType dtype, const char* what) {
  require_type(view, dtype, what);
  DSTRAIN_CHECK(view.dense(), "{} {} has strided rows", what, to_string(view.shape()));
}

}  // namespace

void require_tensor(const TensorView& view, DType dtype, const Shape& shape, const char* what) {
  require_dense(view, dtype, what);
  DSTRAIN_CHECK(view.shape() == shape, "{} is {}, not {}", what, to_string(view.shape()),
                to_string(shape));
}

void require_f32(const TensorView& view, const Shape& shape, const char* what) {
  require_tensor(view, DType::f32, shape, what);
}

void require_half(const TensorView& view, const Shape& shape, const char* what) {
  require_tensor(view, view.dtype() == DType::f16 ? DType::f16 : DType::bf16, shape, what);
}

void require_matrix(const TensorView& view,
                    DType dtype,
                    std::int64_t rows,
                    std::int64_t columns,
                    const char* what) {
  require_dense(view, dtype, what);
  require_strided(view, dtype, rows, columns, what);
}

void require_strided(const TensorView& view,
                     DType dtype,
                     std::int64_t rows,
                     std::int64_t columns,
                     const char* what) {
  require_type(view, dtype, what);
  DSTRAIN_CHECK(columns_of(view) == columns && view.numel() == rows * columns,
                "{} is {}, not {} rows of {}", what, to_string(view.shape()), rows, columns);
}

void require_workspace(const TensorView& view, Bytes needed) {
  const Bytes given = view.empty() ? 0 : view.bytes();
  DSTRAIN_CHECK(given >= needed, "a workspace of {} bytes, {} needed", given, needed);
  if (needed > 0) require_dense(view, DType::u8, "workspace");
}

DType element_dtype(const TensorView& view, const char* what) {
  DSTRAIN_CHECK(view.dtype() == DType::f32 || is_half(view.dtype()), "{} is {}, no float", what,
                name_of(view.dtype()));
  return view.dtype();
}

std::int64_t columns_of(const TensorView& view) {
  const Shape& shape = view.shape();
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

std::int64_t rows_of(const TensorView& view) {
  return view.numel() == 0 ? 0 : view.numel() / columns_of(view);
}

TensorView as_matrix(const TensorView& view) {
  return view.empty() ? view : view.reshaped({rows_of(view), columns_of(view)});
}

}  // namespace dstrain::ops
