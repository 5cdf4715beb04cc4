#include "runtime/model/fused_pairs.h"

#include "runtime/model/layers/activation_layer.h"
#include "runtime/model/layers/dropout_layer.h"
#include "runtime/model/layers/linear_layer.h"
#include "runtime/model/layers/norm_layer.h"
#include "runtime/ops/residual_norm.h"

namespace dstrain::model {
namespace {

template <class T>
const T& as(const FusedPair::Part& part) {
  return static_cast<const T&>(part.layer);
}

template <class T>
bool is(const Layer& layer) {
  return dynamic_cast<const T*>(&layer) != nullptr;
}

void linear_activation_forward(const FusedPair::Part& linear, const FusedPair::Part& activation) {
  as<LinearLayer>(linear).forward(linear.call, as<ActivationLayer>(activation).kind(),
                                  activation.call.output);
}

void activation_linear_backward(const FusedPair::Part& activation, const FusedPair::Part& linear) {
  const auto& before = as<ActivationLayer>(activation);
  const auto& layer = as<LinearLayer>(linear);
  const TensorView& gradient = linear.call.input_gradients[0].values;
  if (!before.gated() && activation.call.input_gradients[0].values.begins_with(gradient)) {
    layer.backward_input(linear.call, before.kind(), activation.call.inputs[0]);
  } else {
    layer.backward_input(linear.call);
    before.backward(activation.call, linear.call.inputs[0]);
  }
  layer.backward_weight(linear.call);
}

void add_norm_forward(const FusedPair::Part& add, const FusedPair::Part& norm) {
  ops::residual_norm_forward({.join = as<AddLayer>(add).forward_args(add.call),
                              .norm = as<NormLayer>(norm).forward_args(norm.call)},
                             add.call.stream);
}

void add_norm_backward(const FusedPair::Part& add, const FusedPair::Part& norm) {
  const ops::DropoutSite site = as<AddLayer>(add).place().site(add.call.unit.dropout);
  ops::residual_norm_backward({.norm = as<NormLayer>(norm).backward_args(norm.call),
                               .branch_gradient = add.call.input_gradients[1].values,
                               .site = site},
                              add.call.stream);
  if (!site.active()) add.layer.backward(add.call);
}

}  // namespace

FusedPair find_pair(const Layer& first, const Layer& second) {
  const auto* const activation = dynamic_cast<const ActivationLayer*>(&second);
  if (is<LinearLayer>(first) && activation != nullptr && !activation->gated()) {
    return {.forward = linear_activation_forward};
  }
  if (is<ActivationLayer>(first) && is<LinearLayer>(second)) {
    return {.backward = activation_linear_backward};
  }
  const auto* const norm = dynamic_cast<const NormLayer*>(&second);
  if (is<AddLayer>(first) && norm != nullptr && norm->groups() == 1) {
    return {add_norm_forward, add_norm_backward};
  }
  return {};
}

}  // namespace dstrain::model
