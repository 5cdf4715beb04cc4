#include "runtime/ops/weight_gradient.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void weight_gradient(const WeightGradientArgs& args, StreamView stream) {
  const MatmulArgs& product = args.product;
  if (!product.out.empty()) {
    check_product(product, stream);
    DSTRAIN_CHECK(product.a_transposed && !product.b_transposed && product.bias.empty(),
                  "not the product of a weight's gradient");
    require_f32(product.out, product.out.shape(), "the weight's gradient");
  }
  if (!args.bias_gradient.empty()) {
    const TensorView& gradient = args.output_gradient();
    const DType dtype = element_dtype(gradient, "the output's gradient");
    require_tensor(gradient, dtype, gradient.shape(), "the output's gradient");
    require_f32(args.bias_gradient, {columns_of(gradient)}, "bias_gradient");
  }
  op_table(stream).weight_gradient(args, stream);
}

}  // namespace dstrain::ops
