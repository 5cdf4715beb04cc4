#include "runtime/model/layers/activation_layer.h"

#include "runtime/ops/checks.h"

namespace dstrain::model {

/// The factor is empty if there is none. Rows are strided if both are packed.
struct ActivationLayer::Parts {
  TensorView input;
  TensorView factor{};
};

std::vector<InputUse> ActivationLayer::inputs() const {
  if (form_ == Form::packed) return {{.read_by_backward = true}};
  const InputUse gate{.read_by_backward = true, .gradient_over_output = true};
  if (!gated()) return {gate};
  return {gate, {.read_by_backward = true}};
}

ActivationLayer::Parts ActivationLayer::parts(std::span<const TensorView> tensors) const {
  if (form_ == Form::plain) return {tensors[0]};
  if (form_ == Form::gated) return {tensors[0], tensors[1]};
  const TensorView packed = ops::as_matrix(tensors[0]);
  const std::int64_t features = ops::columns_of(packed) / 2;
  return {packed.columns(0, features), packed.columns(features, features)};
}

void ActivationLayer::forward(const LayerCall& call) const {
  const Parts in = parts(call.inputs);
  ops::activation_forward(
      {.kind = kind_, .input = in.input, .factor = in.factor, .output = call.output}, call.stream);
}

void ActivationLayer::backward(const LayerCall& call, const TensorView& output) const {
  const Parts in = parts(call.inputs);
  std::vector<TensorView> gradients;
  for (const InputGradient& gradient : call.input_gradients) gradients.push_back(gradient.values);
  const Parts out = parts(gradients);
  ops::activation_backward({.kind = kind_,
                            .input = in.input,
                            .factor = in.factor,
                            .output_gradient = call.output_gradient,
                            .input_gradient = out.input,
                            .factor_gradient = out.factor,
                            .output = output},
                           call.stream);
}

}  // namespace dstrain::model
