#include "runtime/ops/checks.h"

namespace dstrain::ops {
namespace {

void require_dense_f32(const TensorView& view, const char* what) {
  DSTRAIN_CHECK(!view.empty() || view.numel() == 0, "{} is missing", what);
  DSTRAIN_CHECK(view.dtype() == DType::f32, "{} is not f32", what);
  DSTRAIN_CHECK(view.dense(), "{} {} has strided rows", what, to_string(view.shape()));
}

}  // namespace

void require_f32(const TensorView& view, const Shape& shape, const char* what) {
  require_dense_f32(view, what);
  DSTRAIN_CHECK(view.shape() == shape, "{} is {}, not {}", what, to_string(view.shape()),
                to_string(shape));
}

void require_matrix(const TensorView& view,
                    std::int64_t rows,
                    std::int64_t columns,
                    const char* what) {
  require_dense_f32(view, what);
  DSTRAIN_CHECK(columns_of(view) == columns && view.numel() == rows * columns,
                "{} is {}, not {} rows of {}", what, to_string(view.shape()), rows, columns);
}

std::int64_t columns_of(const TensorView& view) {
  const Shape& shape = view.shape();
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

std::int64_t rows_of(const TensorView& view) {
  return view.numel() == 0 ? 0 : view.numel() / columns_of(view);
}

}  // namespace dstrain::ops
