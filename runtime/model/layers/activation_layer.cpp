#include "runtime/model/layers/activation_layer.h"

namespace dstrain::model {

std::vector<InputUse> ActivationLayer::inputs() const {
  const InputUse gate{.read_by_backward = true, .gradient_over_output = true};
  if (!gated()) return {gate};
  return {gate, {.read_by_backward = true}};
}

void ActivationLayer::forward(const LayerCall& call) const {
  ops::activation_forward({.kind = kind_,
                           .input = call.inputs[0],
                           .factor = gated() ? call.inputs[1] : TensorView{},
                           .output = call.output},
                          call.stream);
}

void ActivationLayer::backward(const LayerCall& call, const TensorView& output) const {
  ops::activation_backward(
      {.kind = kind_,
       .input = call.inputs[0],
       .factor = gated() ? call.inputs[1] : TensorView{},
       .output_gradient = call.output_gradient,
       .input_gradient = call.input_gradients[0].values,
       .factor_gradient = gated() ? call.input_gradients[1].values : TensorView{},
       .output = output},
      call.stream);
}

}  // namespace dstrain::model
