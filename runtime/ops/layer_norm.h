#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// Layer normalization of rows of C (Ba et al. 2016); all dense, mean and rstd f32, the rest all
/// f32, all bf16 or all f16: output = (input - mean) rstd weight + bias, rstd = 1 / sqrt(variance +
/// eps). Without `mean` it is root-mean-square normalization (Zhang & Sennrich 2019), which
/// subtracts nothing: rstd = 1 / sqrt(mean of input^2 + eps).
struct LayerNormArgs {
  TensorView input;   ///< (..., C): R rows
  TensorView weight;  ///< (C)
  TensorView bias{};  ///< (C), or empty
  TensorView mean{};  ///< (R): written by forward, read by the others; or empty
  TensorView rstd;    ///< (R): likewise
  TensorView output;  ///< (..., C)
  float eps = 0;      ///< used by forward

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(input);
    visit(weight);
    visit(bias);
    visit(mean);
    visit(rstd);
    visit(output);
  }
};

/// Writes mean, rstd and output. Asynchronous on `stream`.
void layer_norm_forward(const LayerNormArgs& args, StreamView stream);

/// Recomputes the output, bit for bit, from mean and rstd. Asynchronous on `stream`.
void layer_norm_recompute(const LayerNormArgs& args, StreamView stream);

/// All dense. Statistics and the gradients of weight and bias are f32; the rest is all f32, all
/// bf16 or all f16. Every gradient is overwritten or, if its flag says so, added to.
struct LayerNormBackwardArgs {
  TensorView input;            ///< (..., C)
  TensorView weight;           ///< (C)
  TensorView mean{};           ///< (R), or empty as in forward
  TensorView rstd;             ///< (R)
  TensorView output_gradient;  ///< (..., C)
  TensorView residual;  ///< (..., C) or empty: the gradient that bypasses the norm, added to the
                        ///< input's; may be the same memory as input_gradient
  TensorView input_gradient;   ///< (..., C)
  TensorView weight_gradient;  ///< (C); empty: not computed
  TensorView bias_gradient;    ///< (C); likewise
  bool accumulate_input = false;
  bool accumulate_weight = false;
  bool accumulate_bias = false;

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(input);
    visit(weight);
    visit(mean);
    visit(rstd);
    visit(output_gradient);
    visit(residual);
    visit(input_gradient);
    visit(weight_gradient);
    visit(bias_gradient);
  }
};

/// Throw Error{internal} unless the tensors fit together.
void require_layer_norm(const LayerNormArgs& args);
void require_layer_norm(const LayerNormBackwardArgs& args);

/// Adds the rows of the gradients of weight and bias in a fixed order. Asynchronous on `stream`.
void layer_norm_backward(const LayerNormBackwardArgs& args, StreamView stream);

}  // namespace dstrain::ops
