#include "runtime/model/gpt2_block_linear.h"

#include "runtime/ops/bias_gradient.h"
#include "runtime/ops/checks.h"

namespace dstrain::model {
namespace {

TensorView as_matrix(const TensorView& view) {
  return view.reshaped({ops::rows_of(view), ops::columns_of(view)});
}

}  // namespace

void linear_forward(const LinearArgs& args, ops::Matmuls& matmuls, StreamView stream) {
  matmuls.run({.a = as_matrix(args.input),
               .b = args.weight,
               .out = as_matrix(args.output),
               .bias = args.bias},
              stream);
}

void linear_backward_parameters(const LinearParameterGradients& args,
                                ops::Matmuls& matmuls,
                                StreamView stream) {
  matmuls.run({.a = as_matrix(args.input),
               .b = as_matrix(args.output_gradient),
               .out = args.weight.values,
               .bias = {},
               .a_transposed = true,
               .accumulate = args.weight.accumulate},
              stream);
  ops::bias_gradient({.output_gradient = args.output_gradient,
                      .gradient = args.bias.values,
                      .accumulate = args.bias.accumulate},
                     stream);
}

void linear_backward_input(const LinearInputGradient& args,
                           ops::Matmuls& matmuls,
                           StreamView stream) {
  matmuls.run({.a = as_matrix(args.output_gradient),
               .b = args.weight,
               .out = as_matrix(args.input_gradient),
               .bias = {},
               .b_transposed = true},
              stream);
}

}  // namespace dstrain::model
