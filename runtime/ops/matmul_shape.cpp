#include "runtime/ops/matmul.h"

namespace dstrain::ops {
namespace {

bool is_float(DType dtype) {
  return dtype == DType::f32 || is_half(dtype);
}

void require_operand(const TensorView& view, const char* name) {
  DSTRAIN_CHECK(
      is_float(view.dtype()) && view.shape().rank() == 2 && view.dense() && view.numel() > 0,
      "{} {} is not a dense matrix of floats", name, to_string(view.shape()));
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
                          .k = a[args.a_transposed ? 0 : 1]};
  DSTRAIN_CHECK(b[args.b_transposed ? 1 : 0] == shape.k, "a {} b {}", to_string(a), to_string(b));
  DSTRAIN_CHECK(args.out.shape() == Shape({shape.m, shape.n}), "a {} b {} out {}", to_string(a),
                to_string(b), to_string(args.out.shape()));
  const bool bias_fits = is_float(args.bias.dtype()) && args.bias.dense() &&
                         args.bias.shape().rank() == 1 && args.bias.numel() == shape.n;
  DSTRAIN_CHECK(args.bias.shape().rank() == 0 || bias_fits, "bias {} for {} columns",
                to_string(args.bias.shape()), shape.n);
  DSTRAIN_CHECK(!args.accumulate || args.out.dtype() == DType::f32, "sums are kept in f32");
  return shape;
}

}  // namespace dstrain::ops
