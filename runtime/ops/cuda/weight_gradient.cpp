#include "runtime/ops/weight_gradient.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/gpu_elements.h"
#include "runtime/ops/cuda/row_sums.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {

void weight_gradient(const WeightGradientArgs& args, StreamView stream) {
  if (!args.product.out.empty()) gpu::matmul(args.product, stream);
  if (args.bias_gradient.empty()) return;
  const TensorView& gradient = args.output_gradient();
  with_element_type(gradient.dtype(), [&](auto element) {
    using T = decltype(element);
    add_up_rows<T>("weight_gradient",
                   {.values = elements<T>(gradient),
                    .rows = rows_of(gradient),
                    .columns = columns_of(gradient),
                    .plain = {floats(args.bias_gradient), args.accumulate_bias}},
                   stream);
  });
}

}  // namespace dstrain::ops::gpu
