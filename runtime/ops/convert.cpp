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
    DSTRAIN_CHECK(source.dtype() == DType::f32 || target.dtype() == DType::f32, "{} as {}",
                  name_of(source.dtype()), name_of(target.dtype()));
  }
  op_table(stream).convert(source, target, stream);
}

}  // namespace dstrain::ops
