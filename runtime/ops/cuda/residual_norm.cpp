#include "runtime/ops/residual_norm.h"

#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::ops::gpu {

void residual_norm_forward(const ResidualNormArgs& args, StreamView stream) {
  gpu::dropout(args.join, stream);
  gpu::layer_norm_forward(args.norm, stream);
}

void residual_norm_backward(const ResidualNormBackwardArgs& args, StreamView stream) {
  gpu::layer_norm_backward(args.norm, stream);
  if (args.site.active()) gpu::dropout(branch_dropout(args), stream);
}

}  // namespace dstrain::ops::gpu
