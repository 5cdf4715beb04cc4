#include "runtime/ops/weight_gradient.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void weight_gradient(const WeightGradientArgs& args, StreamView stream) {
  const MatmulShape shape = check_product(args.product, stream);
  DSTRAIN_CHECK(
      args.product.a_transposed && !args.product.b_transposed && args.product.bias.empty(),
      "not the product of a weight's gradient");
  require_f32(args.product.out, args.product.out.shape(), "the weight's gradient");
  require_f32(args.bias_gradient, {shape.n}, "bias_gradient");
  op_table(stream).weight_gradient(args, stream);
}

}  // namespace dstrain::ops
