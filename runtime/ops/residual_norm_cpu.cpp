#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/residual_norm.h"

namespace dstrain::ops::cpu {

void residual_norm_forward(const ResidualNormArgs& args, StreamView stream) {
  cpu::dropout(args.join, stream);
  cpu::layer_norm_forward(args.norm, stream);
}

void residual_norm_backward(const ResidualNormBackwardArgs& args, StreamView stream) {
  cpu::layer_norm_backward(args.norm, stream);
  if (args.site.active()) cpu::dropout(branch_dropout(args), stream);
}

}  // namespace dstrain::ops::cpu
