#include "runtime/ops/add.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void add(const TensorView& values, const TensorView& sum, StreamView stream) {
  require_f32(values, {sum.numel()}, "values");
  require_f32(sum, {sum.numel()}, "sum");
  op_table(stream).add(values, sum, stream);
}

}  // namespace dstrain::ops
