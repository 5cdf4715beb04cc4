#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// The activations of MLPs, between their linear layers. Phi is the normal distribution's function
/// and s the logistic function:
enum class Activation : std::int8_t {
  gelu_tanh,   ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: "gelu_new",
               ///< "gelu_pytorch_tanh" (Hendrycks & Gimpel 2016)
  gelu,        ///< x Phi(x), to 2e-7
  quick_gelu,  ///< x s(1.702 x)
  silu,        ///< x s(x), also called swish
  relu,        ///< max(x, 0)
};

/// output = activation(input) [factor], elementwise; a gated MLP has a factor (Shazeer 2020). All
/// f32, all bf16 or all f16, and of one size (..., columns). The output may be any of the inputs.
/// Rows may be strided, so that input and factor may be packed in one tensor.
struct ActivationArgs {
  Activation kind = Activation::gelu_tanh;
  TensorView input;
  TensorView factor{};  ///< or empty
  TensorView output;

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(input);
    visit(factor);
    visit(output);
  }
};
/// Asynchronous on `stream`.
void activation_forward(const ActivationArgs& args, StreamView stream);

/// Computes the gradients of forward's inputs from that of the output. With `output`, also
/// recomputes the output, bit for bit, for the product that follows: one exponential serves both.
/// Tensors as in forward.
struct ActivationBackwardArgs {
  Activation kind = Activation::gelu_tanh;
  TensorView input;
  TensorView factor{};  ///< as in forward
  TensorView output_gradient;
  TensorView input_gradient;     ///< written; may be output_gradient
  TensorView factor_gradient{};  ///< written, with a factor
  TensorView output{};           ///< or empty

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(input);
    visit(factor);
    visit(output_gradient);
    visit(input_gradient);
    visit(factor_gradient);
    visit(output);
  }
};
/// Asynchronous on `stream`.
void activation_backward(const ActivationBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
