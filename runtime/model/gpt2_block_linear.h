#pragma once
#include "runtime/model/unit.h"

namespace dstrain::model {

/// output (..., N) = input (..., K) weight (K, N) + bias (N): Hugging Face's Conv1D.
struct LinearArgs {
  TensorView input;
  TensorView weight;
  TensorView bias;
  TensorView output;
};
void linear_forward(const LinearArgs& args, ops::Matmuls& matmuls, StreamView stream);

/// Gradients of weight and bias from input (..., K) and output_gradient (..., N).
struct LinearParameterGradients {
  TensorView input;
  TensorView output_gradient;
  GradientTarget weight;
  GradientTarget bias;
};
void linear_backward_parameters(const LinearParameterGradients& args,
                                ops::Matmuls& matmuls,
                                StreamView stream);

/// input_gradient (..., K) = output_gradient (..., N) weight (K, N) transposed.
struct LinearInputGradient {
  TensorView output_gradient;
  TensorView weight;
  TensorView input_gradient;
};
void linear_backward_input(const LinearInputGradient& args,
                           ops::Matmuls& matmuls,
                           StreamView stream);

}  // namespace dstrain::model
