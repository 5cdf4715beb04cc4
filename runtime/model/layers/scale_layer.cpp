#include "runtime/model/layers/scale_layer.h"

#include "runtime/ops/scale.h"

namespace dstrain::model {

void ScaleLayer::forward(const LayerCall& call) const {
  ops::scale(call.inputs[0], factor_, call.output, call.stream);
}

void ScaleLayer::backward(const LayerCall& call) const {
  ops::scale(call.output_gradient, factor_, call.input_gradients[0].values, call.stream);
}

}  // namespace dstrain::model
