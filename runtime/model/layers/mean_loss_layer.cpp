#include "runtime/model/layers/mean_loss_layer.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/mean_loss.h"

namespace dstrain::model {
namespace {

/// Without the gradient.
ops::MeanLossArgs args_of(const LayerCall& call, MeanLossLayer::Terms terms, float factor) {
  const std::int64_t rows = call.shape.rows();
  const bool squares = terms == MeanLossLayer::Terms::squared_errors;
  return {.values = ops::as_matrix(call.inputs[0]),
          .targets = squares ? ops::as_matrix(call.unit.targets) : TensorView(),
          .labels = call.unit.labels.reshaped({rows}),
          .factor = factor,
          .losses = call.workspace.reused(DType::f32, {rows}),
          .loss_sum = call.unit.loss};
}

}  // namespace

Bytes MeanLossLayer::forward_workspace(BatchShape shape) const {
  return shape.rows() * size_of(DType::f32);
}

void MeanLossLayer::forward(const LayerCall& call) const {
  if (call.unit.logits.empty()) {
    ops::mean_loss(args_of(call, terms_, factor_), call.stream);
  } else {
    ops::convert(call.inputs[0], call.unit.logits, call.stream);
  }
}

void MeanLossLayer::backward(const LayerCall& call) const {
  ops::MeanLossArgs args = args_of(call, terms_, factor_);
  args.label_weight = call.unit.label_weight;
  args.gradient = ops::as_matrix(call.input_gradients[0].values);
  ops::mean_loss(args, call.stream);
}

}  // namespace dstrain::model
