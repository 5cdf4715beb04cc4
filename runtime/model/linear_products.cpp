#include "runtime/model/linear_products.h"

#include <algorithm>

#include "runtime/ops/checks.h"

namespace dstrain::model {

TensorView as_matrix(const TensorView& view) {
  return view.reshaped({ops::rows_of(view), ops::columns_of(view)});
}

ops::MatmulArgs output_product(const OutputOperands& operands) {
  return {.a = as_matrix(operands.input),
          .b = operands.weight,
          .out = as_matrix(operands.output),
          .bias = operands.bias,
          .accumulate = operands.accumulate,
          .workspace = {}};
}

ops::MatmulArgs weight_product(const WeightOperands& operands) {
  return {.a = as_matrix(operands.input),
          .b = as_matrix(operands.output_gradient),
          .out = operands.weight.values,
          .bias = {},
          .a_transposed = true,
          .accumulate = operands.weight.accumulate,
          .workspace = {}};
}

ops::MatmulArgs input_product(const InputOperands& operands) {
  return {.a = as_matrix(operands.output_gradient),
          .b = operands.weight,
          .out = as_matrix(operands.input_gradient),
          .bias = {},
          .b_transposed = true,
          .workspace = {}};
}

Bytes products_workspace(const LinearSizes& sizes, DType dtype, DType output_dtype) {
  const TensorView input(nullptr, dtype, {sizes.rows, sizes.inputs});
  const TensorView output(nullptr, output_dtype, {sizes.rows, sizes.outputs});
  const TensorView gradient(nullptr, dtype, {sizes.rows, sizes.outputs});
  const TensorView weight(nullptr, dtype, {sizes.inputs, sizes.outputs});
  const TensorView bias(nullptr, dtype, {sizes.outputs});
  const TensorView weight_gradient(nullptr, DType::f32, weight.shape());
  return std::max(
      {ops::matmul_workspace(output_product({input, weight, output, bias})),
       ops::matmul_workspace(weight_product({input, gradient, {weight_gradient, true}})),
       ops::matmul_workspace(input_product({gradient, weight, input}))});
}

void run(ops::MatmulArgs product, const Products& products, StreamView stream) {
  product.workspace = products.workspace;
  products.matmuls.run(product, stream);
}

}  // namespace dstrain::model
