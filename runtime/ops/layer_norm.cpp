#include "runtime/ops/layer_norm.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void require_layer_norm(const LayerNormArgs& args) {
  const std::int64_t columns = columns_of(args.input);
  const std::int64_t rows = rows_of(args.input);
  const DType dtype = element_dtype(args.input, "input");
  require_matrix(args.input, dtype, rows, columns, "input");
  require_matrix(args.output, dtype, rows, columns, "output");
  require_tensor(args.weight, dtype, {columns}, "weight");
  if (!args.bias.empty()) require_tensor(args.bias, dtype, {columns}, "bias");
  if (!args.mean.empty()) require_f32(args.mean, {rows}, "mean");
  require_f32(args.rstd, {rows}, "rstd");
}

void layer_norm_forward(const LayerNormArgs& args, StreamView stream) {
  require_layer_norm(args);
  op_table(stream).layer_norm_forward(args, stream);
}

void layer_norm_recompute(const LayerNormArgs& args, StreamView stream) {
  require_layer_norm(args);
  op_table(stream).layer_norm_recompute(args, stream);
}

void require_layer_norm(const LayerNormBackwardArgs& args) {
  const std::int64_t columns = columns_of(args.input);
  const std::int64_t rows = rows_of(args.input);
  const DType dtype = element_dtype(args.input, "input");
  require_matrix(args.input, dtype, rows, columns, "input");
  require_tensor(args.weight, dtype, {columns}, "weight");
  if (!args.mean.empty()) require_f32(args.mean, {rows}, "mean");
  require_f32(args.rstd, {rows}, "rstd");
  require_matrix(args.output_gradient, dtype, rows, columns, "output_gradient");
  if (!args.residual.empty()) require_matrix(args.residual, dtype, rows, columns, "residual");
  require_matrix(args.input_gradient, dtype, rows, columns, "input_gradient");
  if (!args.weight_gradient.empty()) {
    require_f32(args.weight_gradient, {columns}, "weight_gradient");
  }
  if (!args.bias_gradient.empty()) require_f32(args.bias_gradient, {columns}, "bias_gradient");
  DSTRAIN_CHECK(!args.residual.begins_with(args.input_gradient) || !args.accumulate_input,
                "the residual would count twice");
}

void layer_norm_backward(const LayerNormBackwardArgs& args, StreamView stream) {
  require_layer_norm(args);
  op_table(stream).layer_norm_backward(args, stream);
}

}  // namespace dstrain::ops
