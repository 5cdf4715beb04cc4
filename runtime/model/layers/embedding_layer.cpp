#include "runtime/model/layers/embedding_layer.h"

#include "runtime/ops/embedding.h"

namespace dstrain::model {

void EmbeddingLayer::forward(const LayerCall& call) const {
  const auto& positions = tables_.positions;
  ops::embedding_forward({.tokens = tokens(call),
                          .first_position = call.unit.document_start,
                          .past = call.unit.cache != nullptr && tables_.axis == Axis::target
                                      ? call.unit.cache->places.past
                                      : TensorView{},
                          .token_table = call.value(tables_.tokens),
                          .position_table = positions ? call.value(*positions) : TensorView{},
                          .output = call.output},
                         call.stream);
}

void EmbeddingLayer::backward(const LayerCall& call) const {
  const auto& positions = tables_.positions;
  const GradientTarget& token = call.gradient(tables_.tokens);
  const GradientTarget position = positions ? call.gradient(*positions) : GradientTarget{};
  ops::embedding_backward({.tokens = tokens(call),
                           .first_position = call.unit.document_start,
                           .output_gradient = call.output_gradient,
                           .token_gradient = token.values,
                           .position_gradient = position.values,
                           .accumulate_token = token.accumulate,
                           .accumulate_position = position.accumulate},
                          call.stream);
}

}  // namespace dstrain::model
