#pragma once
#include "runtime/model/linear.h"

namespace dstrain::model {

/// (..., N) as (rows, N).
TensorView as_matrix(const TensorView& view);

/// The three products of a linear layer, or of a tile of one; rows are flattened.
struct OutputOperands {
  TensorView input;   ///< (..., K)
  TensorView weight;  ///< (K, N)
  TensorView output;  ///< (..., N)
  TensorView bias;    ///< (N) or empty
  bool accumulate = false;
};
ops::MatmulArgs output_product(const OutputOperands& operands);

struct WeightOperands {
  TensorView input;            ///< (..., K)
  TensorView output_gradient;  ///< (..., N)
  GradientTarget weight;       ///< (K, N)
};
ops::MatmulArgs weight_product(const WeightOperands& operands);

struct InputOperands {
  TensorView output_gradient;  ///< (..., N)
  TensorView weight;           ///< (K, N)
  TensorView input_gradient;   ///< (..., K)
};
ops::MatmulArgs input_product(const InputOperands& operands);

/// Workspace that each of the three can do with, for values of `dtype` and outputs of `output`.
Bytes products_workspace(const LinearSizes& sizes, DType dtype, DType output);

void run(ops::MatmulArgs product, const Products& products, StreamView stream);

}  // namespace dstrain::model
