#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/matmul_gelu.h"

namespace dstrain::ops::cpu {

void matmul_gelu_forward(const MatmulGeluArgs& args, StreamView stream) {
  cpu::matmul(args.product, stream);
  cpu::gelu_forward(args.product.out, args.active, stream);
}

void matmul_gelu_backward(const MatmulGeluBackwardArgs& args, StreamView stream) {
  cpu::matmul(args.product, stream);
  cpu::gelu_backward(args.input, args.product.out, args.active, stream);
}

}  // namespace dstrain::ops::cpu
