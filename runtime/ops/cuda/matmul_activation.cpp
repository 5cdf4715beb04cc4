#include "runtime/ops/matmul_activation.h"

#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::ops::gpu {

void matmul_activation_forward(const MatmulActivationArgs& args, StreamView stream) {
  gpu::matmul(args.product, stream);
  gpu::activation_forward({.kind = args.kind, .input = args.product.out, .output = args.active},
                          stream);
}

void matmul_activation_backward(const MatmulActivationBackwardArgs& args, StreamView stream) {
  gpu::matmul(args.product, stream);
  gpu::activation_backward({.kind = args.kind,
                            .input = args.input,
                            .output_gradient = args.product.out,
                            .input_gradient = args.product.out,
                            .output = args.active},
                           stream);
}

}  // namespace dstrain::ops::gpu
