#include "runtime/ops/add.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void add(const TensorView& values, const TensorView& sum, StreamView stream) {
  const Shape shape{sum.numel()};
  require_tensor(values, element_dtype(values, "values"), shape, "values");
  require_tensor(sum, element_dtype(sum, "sum"), shape, "sum");
  op_table(stream).add(values, sum, stream);
}

}  // namespace dstrain::ops
