#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/row_sums.h"
#include "runtime/ops/weight_gradient.h"

namespace dstrain::ops::cpu {

void weight_gradient(const WeightGradientArgs& args, StreamView stream) {
  if (!args.product.out.empty()) cpu::matmul(args.product, stream);
  if (args.bias_gradient.empty()) return;
  cpu_stream(stream).launch([args] {
    const TensorView& gradient = args.output_gradient();
    with_element_type(gradient.dtype(), [&](auto element) {
      add_up_rows<decltype(element)>({.values = elements<decltype(element)>(gradient),
                                      .rows = rows_of(gradient),
                                      .columns = columns_of(gradient)},
                                     {floats(args.bias_gradient), args.accumulate_bias});
    });
  });
}

}  // namespace dstrain::ops::cpu
