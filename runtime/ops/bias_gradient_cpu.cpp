#include "runtime/ops/bias_gradient.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/row_sums.h"

namespace dstrain::ops {

void bias_gradient(const BiasGradientArgs& args, StreamView stream) {
  const std::int64_t columns = columns_of(args.output_gradient);
  const std::int64_t rows = rows_of(args.output_gradient);
  const DType dtype = element_dtype(args.output_gradient, "output_gradient");
  require_matrix(args.output_gradient, dtype, rows, columns, "output_gradient");
  require_f32(args.gradient, {columns}, "gradient");
  stream.launch([args, rows, columns, dtype] {
    with_element_type(dtype, [&](auto element) {
      using T = decltype(element);
      add_up_rows<T>(
          {.values = elements<T>(args.output_gradient), .rows = rows, .columns = columns},
          {floats(args.gradient), args.accumulate});
    });
  });
}

}  // namespace dstrain::ops
