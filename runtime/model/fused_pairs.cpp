#include "runtime/model/fused_pairs.h"

#include "runtime/model/layers/dropout_layer.h"
#include "runtime/model/layers/gelu_layer.h"
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

void linear_gelu_forward(const FusedPair::Part& linear, const FusedPair::Part& gelu) {
  as<LinearLayer>(linear).forward(linear.call, gelu.call.output);
}

void gelu_linear_backward(const FusedPair::Part& gelu, const FusedPair::Part& linear) {
  as<LinearLayer>(linear).backward_from(linear.call, gelu.call.inputs[0]);
}

void add_norm_forward(const FusedPair::Part& add, const FusedPair::Part& norm) {
  ops::residual_norm_forward({.join = as<AddLayer>(add).forward_args(add.call),
                              .norm = as<NormLayer>(norm).forward_args(norm.call)},
                             add.call.stream);
}

void add_norm_backward(const FusedPair::Part& add, const FusedPair::Part& norm) {
  const ops::DropoutSite site = as<AddLayer>(add).place().site(add.call);
  ops::residual_norm_backward({.norm = as<NormLayer>(norm).backward_args(norm.call),
                               .branch_gradient = add.call.input_gradients[1].values,
                               .site = site},
                              add.call.stream);
  if (!site.active()) add.layer.backward(add.call);
}

}  // namespace

FusedPair find_pair(const Layer& first, const Layer& second) {
  if (is<LinearLayer>(first) && is<GeluLayer>(second)) return {.forward = linear_gelu_forward};
  if (is<GeluLayer>(first) && is<LinearLayer>(second)) return {.backward = gelu_linear_backward};
  if (is<AddLayer>(first) && is<NormLayer>(second)) return {add_norm_forward, add_norm_backward};
  return {};
}

}  // namespace dstrain::model
