#include "runtime/ops/residual_norm.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void residual_norm_forward(const ResidualNormArgs& args, StreamView stream) {
  require_dropout(args.join);
  require_layer_norm(args.norm);
  DSTRAIN_CHECK(!args.join.residual.empty() && args.norm.input.begins_with(args.join.output),
                "the norm is not of the sum");
  op_table(stream).residual_norm_forward(args, stream);
}

void residual_norm_backward(const ResidualNormBackwardArgs& args, StreamView stream) {
  require_layer_norm(args.norm);
  if (args.site.active()) require_dropout(branch_dropout(args));
  op_table(stream).residual_norm_backward(args, stream);
}

}  // namespace dstrain::ops
