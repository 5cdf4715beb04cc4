#include "runtime/model/layers/dropout_layer.h"

namespace dstrain::model {
namespace {

void drop(const TensorView& input,
          const TensorView& output,
          const ops::DropoutSite& site,
          StreamView stream) {
  if (!site.active() && output.begins_with(input)) return;
  ops::dropout({.input = input, .residual = {}, .output = output, .site = site}, stream);
}

}  // namespace

void DropoutLayer::forward(const LayerCall& call) const {
  drop(call.inputs[0], call.output, place_.site(call.unit.dropout), call.stream);
}

void DropoutLayer::backward(const LayerCall& call) const {
  drop(call.output_gradient, call.input_gradients[0].values, place_.site(call.unit.dropout),
       call.stream);
}

std::vector<InputUse> AddLayer::inputs() const {
  return {{.gradient_is_outputs = true},
          {.replaced_by_output = true, .gradient_is_outputs = place_.rate == 0}};
}

ops::DropoutArgs AddLayer::forward_args(const LayerCall& call) const {
  return {.input = call.inputs[1],
          .residual = call.inputs[0],
          .output = call.output,
          .site = place_.site(call.unit.dropout)};
}

void AddLayer::forward(const LayerCall& call) const {
  ops::dropout(forward_args(call), call.stream);
}

void AddLayer::backward(const LayerCall& call) const {
  if (place_.rate == 0) return;
  drop(call.output_gradient, call.input_gradients[1].values, place_.site(call.unit.dropout),
       call.stream);
}

}  // namespace dstrain::model
