#include "runtime/model/layers/attention_layer.h"

namespace dstrain::model {

void AttentionLayer::forward(const LayerCall& call) const {
  ops::attention_forward({.qkv = call.inputs[0],
                          .output = call.output,
                          .logsumexp = call.kept[0],
                          .workspace = call.workspace,
                          .dropout = place_.site(call)},
                         call.stream);
}

void AttentionLayer::backward(const LayerCall& call) const {
  ops::attention_backward({.qkv = call.inputs[0],
                           .output = call.output,
                           .logsumexp = call.kept[0],
                           .output_gradient = call.output_gradient,
                           .qkv_gradient = call.input_gradients[0].values,
                           .workspace = call.workspace,
                           .dropout = place_.site(call)},
                          call.stream);
}

}  // namespace dstrain::model
