#include "runtime/ops/mean_loss.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void mean_loss(const MeanLossArgs& args, StreamView stream) {
  const std::int64_t rows = rows_of(args.values);
  const std::int64_t columns = columns_of(args.values);
  const DType dtype = element_dtype(args.values, "values");
  require_tensor(args.values, dtype, {rows, columns}, "values");
  if (!args.targets.empty()) require_f32(args.targets, {rows, columns}, "targets");
  require_tensor(args.labels, DType::i32, {rows}, "labels");
  require_f32(args.losses, {rows}, "losses");
  require_tensor(args.loss_sum, DType::f64, {1}, "loss_sum");
  if (!args.label_weight.empty()) {
    require_f32(args.label_weight, {1}, "label_weight");
    require_tensor(args.gradient, dtype, {rows, columns}, "gradient");
  }
  op_table(stream).mean_loss(args, stream);
}

}  // namespace dstrain::ops
