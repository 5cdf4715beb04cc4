#include "runtime/model/layers/linear_layer.h"

namespace dstrain::model {

void LinearLayer::forward(const LayerCall& call, const TensorView& active) const {
  linear_forward({call.inputs[0], weight(call), call.value(parameters_.bias), call.output, active},
                 call.workspace, call.stream);
}

void LinearLayer::backward(const LayerCall& call) const {
  const TensorView& gradient = call.input_gradients[0].values;
  const bool over_input = gradient.begins_with(call.inputs[0]);
  if (!over_input) {
    linear_backward_input({call.output_gradient, weight(call), gradient}, call.workspace,
                          call.stream);
  }
  linear_backward({call.inputs[0], call.output_gradient, weight(call),
                   call.gradient(parameters_.bias), over_input},
                  call.workspace, call.stream);
}

void LinearLayer::backward_from(const LayerCall& call, const TensorView& inner) const {
  linear_backward_input(
      {call.output_gradient, weight(call), call.input_gradients[0].values, inner, call.inputs[0]},
      call.workspace, call.stream);
  linear_backward(
      {call.inputs[0], call.output_gradient, weight(call), call.gradient(parameters_.bias)},
      call.workspace, call.stream);
}

}  // namespace dstrain::model
