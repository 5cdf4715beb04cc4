#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/bias_gradient.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/row_sums.h"

namespace dstrain::ops::cpu {

void bias_gradient(const BiasGradientArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    with_element_type(args.output_gradient.dtype(), [&](auto element) {
      add_up_rows<decltype(element)>({.values = elements<decltype(element)>(args.output_gradient),
                                      .rows = rows_of(args.output_gradient),
                                      .columns = columns_of(args.output_gradient)},
                                     {floats(args.gradient), args.accumulate});
    });
  });
}

}  // namespace dstrain::ops::cpu
