#include "runtime/model/gpt2_block_linear.h"

#include <algorithm>

#include "runtime/ops/bias_gradient.h"
#include "runtime/ops/checks.h"

namespace dstrain::model {
namespace {

TensorView as_matrix(const TensorView& view) {
  return view.reshaped({ops::rows_of(view), ops::columns_of(view)});
}

ops::MatmulArgs forward_product(const LinearArgs& args) {
  return {.a = as_matrix(args.input),
          .b = args.weight,
          .out = as_matrix(args.output),
          .bias = args.bias,
          .workspace = {}};
}

ops::MatmulArgs weight_product(const LinearParameterGradients& args) {
  return {.a = as_matrix(args.input),
          .b = as_matrix(args.output_gradient),
          .out = args.weight.values,
          .bias = {},
          .a_transposed = true,
          .accumulate = args.weight.accumulate,
          .workspace = {}};
}

ops::MatmulArgs input_product(const LinearInputGradient& args) {
  return {.a = as_matrix(args.output_gradient),
          .b = args.weight,
          .out = as_matrix(args.input_gradient),
          .bias = {},
          .b_transposed = true,
          .workspace = {}};
}

void run(ops::MatmulArgs product, const Products& products, StreamView stream) {
  product.workspace = products.workspace;
  products.matmuls.run(product, stream);
}

}  // namespace

Bytes linear_workspace(const LinearSizes& sizes, DType dtype) {
  const TensorView input(nullptr, dtype, {sizes.rows, sizes.inputs});
  const TensorView output(nullptr, dtype, {sizes.rows, sizes.outputs});
  const TensorView weight(nullptr, dtype, {sizes.inputs, sizes.outputs});
  const TensorView bias(nullptr, dtype, {sizes.outputs});
  const TensorView weight_gradient(nullptr, DType::f32, weight.shape());
  return std::max(
      {ops::matmul_workspace(forward_product({input, weight, bias, output})),
       ops::matmul_workspace(weight_product({input, output, {weight_gradient, true}, {}})),
       ops::matmul_workspace(input_product({output, weight, input}))});
}

void linear_forward(const LinearArgs& args, const Products& products, StreamView stream) {
  run(forward_product(args), products, stream);
}

void linear_backward_parameters(const LinearParameterGradients& args,
                                const Products& products,
                                StreamView stream) {
  run(weight_product(args), products, stream);
  ops::bias_gradient({.output_gradient = args.output_gradient,
                      .gradient = args.bias.values,
                      .accumulate = args.bias.accumulate},
                     stream);
}

void linear_backward_input(const LinearInputGradient& args,
                           const Products& products,
                           StreamView stream) {
  run(input_product(args), products, stream);
}

}  // namespace dstrain::model
