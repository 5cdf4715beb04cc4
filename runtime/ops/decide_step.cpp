#include "runtime/ops/decide_step.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void decide_step(const DecideStepArgs& args, StreamView stream) {
  require_tensor(args.totals, DType::i64, {rows_of(args.totals), step_total_numel}, "totals");
  require_tensor(args.labels, DType::f64, {1}, "labels");
  require_tensor(args.loss_scale, DType::f64, {1}, "loss_scale");
  require_tensor(args.decision, DType::f64, {StepDecision::numel}, "decision");
  op_table(stream).decide_step(args, stream);
}

}  // namespace dstrain::ops
