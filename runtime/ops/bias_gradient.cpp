#include "runtime/ops/bias_gradient.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void bias_gradient(const BiasGradientArgs& args, StreamView stream) {
  const DType dtype = element_dtype(args.output_gradient, "output_gradient");
  const std::int64_t columns = columns_of(args.output_gradient);
  require_matrix(args.output_gradient, dtype, rows_of(args.output_gradient), columns,
                 "output_gradient");
  require_f32(args.gradient, {columns}, "gradient");
  op_table(stream).bias_gradient(args, stream);
}

}  // namespace dstrain::ops
