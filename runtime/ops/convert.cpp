#include "runtime/ops/convert.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void convert(const TensorView& source, const TensorView& target, StreamView stream) {
  DSTRAIN_CHECK(source.numel() == target.numel() && source.dense() && target.dense(), "{} as {}",
                to_string(source.shape()), to_string(target.shape()));
  if (source.dtype() != target.dtype()) {
    element_dtype(source, "source");
    element_dtype(target, "target");
  }
  op_table(stream).convert(source, target, stream);
}

}  // namespace dstrain::ops
