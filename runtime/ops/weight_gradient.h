#pragma once
#include "runtime/ops/matmul.h"

namespace dstrain::ops {

/// The gradients of a linear layer's weight and bias, both from the output's gradient, which is
/// read once if the device can: product.out (K, N) f32 = [product.out +] input' output_gradient,
/// where product.a (R, K) is the input, transposed, and product.b (R, N) the output's gradient;
/// bias_gradient = [bias_gradient +] the sum of the rows of the output's gradient, in f32 and in a
/// fixed order. For a weight (N, K), with `outputs_first`, the operands change places.
struct WeightGradientArgs {
  MatmulArgs product;        ///< product.out empty: only the bias
  TensorView bias_gradient;  ///< (N) f32; empty: only the weight
  bool accumulate_bias = false;
  bool outputs_first = false;
  [[nodiscard]] const TensorView& output_gradient() const {
    return outputs_first ? product.a : product.b;
  }

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    product.for_each_tensor(visit);
    visit(bias_gradient);
  }
};

/// Asynchronous on `stream`.
void weight_gradient(const WeightGradientArgs& args, StreamView stream);

}  // namespace dstrain::ops
