#pragma once
#include "runtime/model/unit.h"

namespace dstrain::model {

/// What the products of a call run with.
struct Products {
  ops::Matmuls& matmuls;
  std::span<std::byte> workspace;  ///< at least linear_workspace() of each of them
};

/// Bytes of workspace for the forward and backward of a linear layer.
struct LinearSizes {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};
Bytes linear_workspace(const LinearSizes& sizes, DType dtype);

/// output (..., N) = input (..., K) weight (K, N) + bias (N): Hugging Face's Conv1D.
struct LinearArgs {
  TensorView input;
  TensorView weight;
  TensorView bias;
  TensorView output;
};
void linear_forward(const LinearArgs& args, const Products& products, StreamView stream);

/// Gradients of weight and bias from input (..., K) and output_gradient (..., N).
struct LinearParameterGradients {
  TensorView input;
  TensorView output_gradient;
  GradientTarget weight;
  GradientTarget bias;
};
void linear_backward_parameters(const LinearParameterGradients& args,
                                const Products& products,
                                StreamView stream);

/// input_gradient (..., K) = output_gradient (..., N) weight (K, N) transposed.
struct LinearInputGradient {
  TensorView output_gradient;
  TensorView weight;
  TensorView input_gradient;
};
void linear_backward_input(const LinearInputGradient& args,
                           const Products& products,
                           StreamView stream);

}  // namespace dstrain::model
