#include "runtime/ops/dropout.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void require_dropout(const DropoutArgs& args) {
  const Shape& shape = args.input.shape();
  DSTRAIN_CHECK(shape.rank() == 3, "input {} is not (B, T, C)", to_string(shape));
  DSTRAIN_CHECK(args.site.rate >= 0 && args.site.rate < 1, "rate {}", args.site.rate);
  DSTRAIN_CHECK(args.site.first_sample + shape[0] <= (std::int64_t{1} << 24), "sample {}",
                args.site.first_sample + shape[0]);
  const DType dtype = element_dtype(args.input, "input");
  require_tensor(args.input, dtype, shape, "input");
  require_tensor(args.output, dtype, shape, "output");
  if (!args.residual.empty()) require_tensor(args.residual, dtype, shape, "residual");
}

void dropout(const DropoutArgs& args, StreamView stream) {
  require_dropout(args);
  op_table(stream).dropout(args, stream);
}

}  // namespace dstrain::ops
