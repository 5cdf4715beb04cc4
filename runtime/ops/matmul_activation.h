#pragma once
#include "runtime/ops/activation.h"
#include "runtime/ops/matmul.h"

namespace dstrain::ops {

/// A product and the activation after it: product.out = a b + bias, which backward needs, and
/// active = activation(product.out).
struct MatmulActivationArgs {
  MatmulArgs product;
  Activation kind = Activation::gelu_tanh;
  TensorView active;  ///< (M, N), of the dtype of product.out

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    product.for_each_tensor(visit);
    visit(active);
  }
};

/// Gives the bits of matmul() and activation_forward(). Asynchronous on `stream`.
void matmul_activation_forward(const MatmulActivationArgs& args, StreamView stream);

/// The backward product of the layer after an activation: product.out = (a b) activation'(input),
/// where a is the gradient of the layer's output and b its weight. Also recomputes active =
/// activation(input), bit for bit, for the gradient of that weight.
struct MatmulActivationBackwardArgs {
  MatmulArgs product;
  Activation kind = Activation::gelu_tanh;
  TensorView input;   ///< (M, N), of the dtype of product.out, like the next one
  TensorView active;  ///< (M, N): written

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    product.for_each_tensor(visit);
    visit(input);
    visit(active);
  }
};

/// Gives the bits of matmul() and activation_backward(). Asynchronous on `stream`.
void matmul_activation_backward(const MatmulActivationBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
