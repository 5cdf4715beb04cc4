#include "runtime/model/layers/gelu_layer.h"

#include "runtime/ops/gelu.h"

namespace dstrain::model {

void GeluLayer::forward(const LayerCall& call) const {
  ops::gelu_forward(call.inputs[0], call.output, call.stream);
}

void GeluLayer::backward(const LayerCall&) const {
  fail(ErrorCode::internal, "a GELU that no linear layer follows");
}

}  // namespace dstrain::model
