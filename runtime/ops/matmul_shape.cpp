#include "runtime/ops/matmul_shape.h"

namespace dstrain::ops {
namespace {

void require_operand(const TensorView& view, const char* name) {
  DSTRAIN_CHECK(!view.empty() && view.dtype() == DType::f32 && view.shape().rank() == 2,
                "{} {} is not an f32 matrix", name, to_string(view.shape()));
  DSTRAIN_CHECK(view.numel() > 0 && view.row_stride() >= view.shape()[1],
                "{} {} with rows {} apart", name, to_string(view.shape()), view.row_stride());
}

}  // namespace

MatmulShape matmul_shape(const MatmulArgs& args) {
  require_operand(args.a, "a");
  require_operand(args.b, "b");
  require_operand(args.out, "out");
  const Shape& a = args.a.shape();
  const Shape& b = args.b.shape();
  const MatmulShape shape{.m = a[args.a_transposed ? 1 : 0],
                          .n = b[args.b_transposed ? 0 : 1],
                          .k = a[args.a_transposed ? 0 : 1],
                          .a_row = args.a.row_stride(),
                          .b_row = args.b.row_stride(),
                          .out_row = args.out.row_stride(),
                          .a_transposed = args.a_transposed,
                          .b_transposed = args.b_transposed,
                          .bias = !args.bias.empty(),
                          .accumulate = args.accumulate};
  DSTRAIN_CHECK(b[args.b_transposed ? 1 : 0] == shape.k, "a {} b {}", to_string(a), to_string(b));
  DSTRAIN_CHECK(args.out.shape() == Shape({shape.m, shape.n}), "a {} b {} out {}", to_string(a),
                to_string(b), to_string(args.out.shape()));
  DSTRAIN_CHECK(!shape.bias || (args.bias.dtype() == DType::f32 && args.bias.dense() &&
                                args.bias.numel() == shape.n),
                "bias {} for {} columns", to_string(args.bias.shape()), shape.n);
  return shape;
}

}  // namespace dstrain::ops
