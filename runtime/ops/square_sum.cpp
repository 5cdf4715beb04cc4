#include "runtime/ops/square_sum.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void add_squares(const TensorView& values, const TensorView& sum, StreamView stream) {
  require_tensor(values, element_dtype(values, "values"), values.shape(), "values");
  require_tensor(sum, DType::i64, {ExactSum::numel}, "sum");
  op_table(stream).add_squares(values, sum, stream);
}

}  // namespace dstrain::ops
