#include "runtime/model/layers/norm_layer.h"

namespace dstrain::model {

ops::LayerNormArgs NormLayer::forward_args(const LayerCall& call) const {
  return {.input = call.inputs[0],
          .weight = call.value(parameters_.weight),
          .bias = call.value(parameters_.bias),
          .mean = call.kept[0],
          .rstd = call.kept[1],
          .output = call.output,
          .eps = eps_};
}

ops::LayerNormBackwardArgs NormLayer::backward_args(const LayerCall& call) const {
  const GradientTarget& weight = call.gradient(parameters_.weight);
  const GradientTarget& bias = call.gradient(parameters_.bias);
  const InputGradient& input = call.input_gradients[0];
  return {.input = call.inputs[0],
          .weight = call.value(parameters_.weight),
          .mean = call.kept[0],
          .rstd = call.kept[1],
          .output_gradient = call.output_gradient,
          .residual = input.residual,
          .input_gradient = input.values,
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
