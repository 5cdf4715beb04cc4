#include "runtime/ops/gelu.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

/// Both are of one type and size.
void require_alike(const TensorView& input, const TensorView& other, const char* what) {
  const DType dtype = element_dtype(input, "input");
  require_matrix(input, dtype, rows_of(input), columns_of(input), "input");
  require_matrix(other, dtype, rows_of(input), columns_of(input), what);
}

}  // namespace

void gelu_forward(const TensorView& input, const TensorView& output, StreamView stream) {
  require_alike(input, output, "output");
  op_table(stream).gelu_forward(input, output, stream);
}

void gelu_backward(const TensorView& input,
                   const TensorView& gradient,
                   const TensorView& output,
                   StreamView stream) {
  require_alike(input, gradient, "gradient");
  require_alike(input, output, "output");
  op_table(stream).gelu_backward(input, gradient, output, stream);
}

}  // namespace dstrain::ops
