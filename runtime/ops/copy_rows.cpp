#include "runtime/ops/copy_rows.h"

#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void copy_rows(const TensorView& source, const TensorView& target, StreamView stream) {
  const Shape& shape = source.shape();
  DSTRAIN_CHECK(shape == target.shape() && shape.rank() == 2 && source.dtype() == target.dtype(),
                "{} to {}", to_string(shape), to_string(target.shape()));
  op_table(stream).copy_rows(source, target, stream);
}

}  // namespace dstrain::ops
