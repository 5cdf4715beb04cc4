#include "runtime/ops/copy_finite.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void copy_finite(const CopyFiniteArgs& args, StreamView stream) {
  const DType dtype = element_dtype(args.source, "source");
  require_tensor(args.source, dtype, args.target.shape(), "source");
  require_tensor(args.target, dtype, args.target.shape(), "target");
  require_tensor(args.not_finite, DType::i32, {1}, "not_finite");
  op_table(stream).copy_finite(args, stream);
}

}  // namespace dstrain::ops
