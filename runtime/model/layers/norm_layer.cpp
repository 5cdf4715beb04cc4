#include "runtime/model/layers/norm_layer.h"

namespace dstrain::model {

/// Returns the view as (..., C), one row per group.
TensorView NormLayer::rows(const TensorView& view) const {
  if (view.empty() || options_.groups == 1) return view;
  const Shape& shape = view.shape();
  return view.reshaped({shape[0], shape[1] * options_.groups, shape[2] / options_.groups});
}

ops::LayerNormArgs NormLayer::forward_args(const LayerCall& call) const {
  return {.input = rows(call.inputs[0]),
          .weight = call.value(parameters_.weight),
          .bias = parameters_.bias ? call.value(*parameters_.bias) : TensorView{},
          .mean = options_.kind == Kind::layer_norm ? call.kept[1] : TensorView{},
          .rstd = call.kept[0],
          .output = rows(call.output),
          .eps = options_.eps};
}

ops::LayerNormBackwardArgs NormLayer::backward_args(const LayerCall& call) const {
  const GradientTarget& weight = call.gradient(parameters_.weight);
  const GradientTarget bias =
      parameters_.bias ? call.gradient(*parameters_.bias) : GradientTarget{};
  const InputGradient& input = call.input_gradients[0];
  return {.input = rows(call.inputs[0]),
          .weight = call.value(parameters_.weight),
          .mean = options_.kind == Kind::layer_norm ? call.kept[1] : TensorView{},
          .rstd = call.kept[0],
          .output_gradient = rows(call.output_gradient),
          .residual = rows(input.residual),
          .input_gradient = rows(input.values),
          .weight_gradient = weight.values,
          .bias_gradient = bias.values,
          .accumulate_input = input.accumulate,
          .accumulate_weight = weight.accumulate,
          .accumulate_bias = bias.accumulate};
}

void NormLayer::forward(const LayerCall& call) const {
  ops::layer_norm_forward(forward_args(call), call.stream);
}

void NormLayer::rebuild(const LayerCall& call) const {
  ops::layer_norm_recompute(forward_args(call), call.stream);
}

void NormLayer::backward(const LayerCall& call) const {
  ops::layer_norm_backward(backward_args(call), call.stream);
}

}  // namespace dstrain::model
