#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/matmul_activation.h"

namespace dstrain::ops::cpu {

void matmul_activation_forward(const MatmulActivationArgs& args, StreamView stream) {
  cpu::matmul(args.product, stream);
  cpu::activation_forward({.kind = args.kind, .input = args.product.out, .output = args.active},
                          stream);
}

void matmul_activation_backward(const MatmulActivationBackwardArgs& args, StreamView stream) {
  cpu::matmul(args.product, stream);
  cpu::activation_backward({.kind = args.kind,
                            .input = args.input,
                            .output_gradient = args.product.out,
                            .input_gradient = args.product.out,
                            .output = args.active},
                           stream);
}

}  // namespace dstrain::ops::cpu
