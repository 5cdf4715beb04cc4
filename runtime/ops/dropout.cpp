#include "runtime/ops/dropout.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void require_dropout_site(const DropoutSite& site) {
  DSTRAIN_CHECK(site.rate >= 0 && site.rate < 1, "rate {}", site.rate);
  if (site.active()) require_tensor(site.counter, DType::i64, {2}, "counter");
}

void require_dropout(const DropoutArgs& args) {
  const Shape& shape = args.input.shape();
  DSTRAIN_CHECK(shape.rank() == 3, "input {} is not (B, T, C)", to_string(shape));
  require_dropout_site(args.site);
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
