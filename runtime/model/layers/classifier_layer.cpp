#include "runtime/model/layers/classifier_layer.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/classifier.h"

namespace dstrain::model {
Bytes ClassifierLayer::forward_workspace(BatchShape shape) const {
  return ops::classifier_workspace({shape.rows(), options_.channels, options_.classes, unit_.dtype},
                                   unit_.device);
}

void ClassifierLayer::forward(const LayerCall& call) const {
  const TensorView input = ops::as_matrix(call.inputs[0]);
  if (!call.unit.logits.empty()) {
    ops::classifier_logits({.input = input,
                            .weight = call.value(weight_),
                            .logits = call.unit.logits,
                            .workspace = call.workspace},
                           call.stream);
    return;
  }
  ops::classifier_loss({.input = input,
                        .weight = call.value(weight_),
                        .labels = call.unit.labels.reshaped({call.shape.rows()}),
                        .factor = options_.factor,
                        .loss_sum = call.unit.loss,
                        .workspace = call.workspace},
                       call.stream);
}

void ClassifierLayer::backward(const LayerCall& call) const {
  const GradientTarget& weight = call.gradient(weight_);
  ops::classifier_loss({.input = ops::as_matrix(call.inputs[0]),
                        .weight = call.value(weight_),
                        .labels = call.unit.labels.reshaped({call.shape.rows()}),
                        .factor = options_.factor,
                        .loss_sum = call.unit.loss,
                        .label_weight = call.unit.label_weight,
                        .input_gradient = ops::as_matrix(call.input_gradients[0].values),
                        .weight_gradient = weight.values,
                        .accumulate_weight = weight.accumulate,
                        .workspace = call.workspace},
                       call.stream);
}

}  // namespace dstrain::model
