#include "runtime/ops/matmul_activation.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

void require_like_out(const TensorView& view, const MatmulArgs& product, const char* what) {
  require_tensor(view, product.out.dtype(), product.out.shape(), what);
}

}  // namespace

void matmul_activation_forward(const MatmulActivationArgs& args, StreamView stream) {
  check_product(args.product, stream);
  require_like_out(args.active, args.product, "active");
  op_table(stream).matmul_activation_forward(args, stream);
}

void matmul_activation_backward(const MatmulActivationBackwardArgs& args, StreamView stream) {
  check_product(args.product, stream);
  require_like_out(args.input, args.product, "input");
  require_like_out(args.active, args.product, "active");
  DSTRAIN_CHECK(args.product.bias.empty() && !args.product.accumulate,
                "a gradient has no bias and is no sum");
  op_table(stream).matmul_activation_backward(args, stream);
}

}  // namespace dstrain::ops
