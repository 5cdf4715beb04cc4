#include "runtime/ops/scale.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void scale(const TensorView& input, float factor, const TensorView& output, StreamView stream) {
  const DType dtype = element_dtype(input, "input");
  require_tensor(output, dtype, input.shape(), "output");
  op_table(stream).scale(input, factor, output, stream);
}

}  // namespace dstrain::ops
