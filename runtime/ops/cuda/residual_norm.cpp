#include "runtime/ops/residual_norm.h"

#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/norm_of_sum.h"

namespace dstrain::ops::gpu {

void residual_norm_forward(const ResidualNormArgs& args, StreamView stream) {
  if (!args.join.site.active() && norm_of_sum(args.join, args.norm, stream)) return;
  gpu::dropout(args.join, stream);
  gpu::layer_norm_forward(args.norm, stream);
}

void residual_norm_backward(const ResidualNormBackwardArgs& args, StreamView stream) {
  gpu::layer_norm_backward(args.norm, stream);
  if (args.site.active()) gpu::dropout(branch_dropout(args), stream);
}

}  // namespace dstrain::ops::gpu
