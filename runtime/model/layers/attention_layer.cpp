#include "runtime/model/layers/attention_layer.h"

#include "runtime/ops/checks.h"

namespace dstrain::model {

/// (B T, H D) and twice (B T, K D), perhaps with strided rows.
struct AttentionLayer::Projections {
  TensorView query;
  TensorView key;
  TensorView value;
};

ops::AttentionSizes AttentionLayer::sizes(BatchShape shape) const {
  return {shape.sequences, shape.tokens,      shape.tokens,
          options_.heads,  options_.kv_heads, options_.head_size};
}

AttentionLayer::Projections AttentionLayer::projections(std::span<const TensorView> tensors) const {
  if (options_.form == Form::apart) {
    return {ops::as_matrix(tensors[0]), ops::as_matrix(tensors[1]), ops::as_matrix(tensors[2])};
  }
  const std::int64_t queries = options_.heads * options_.head_size;
  const std::int64_t keys = options_.kv_heads * options_.head_size;
  const TensorView packed = ops::as_matrix(tensors[0]);
  return {packed.columns(0, queries), packed.columns(queries, keys),
          packed.columns(queries + keys, keys)};
}

void AttentionLayer::forward(const LayerCall& call) const {
  const Projections in = projections(call.inputs);
  ops::attention_forward({.sizes = sizes(call.unit.shape),
                          .rule = options_.rule,
                          .query = in.query,
                          .key = in.key,
                          .value = in.value,
                          .output = ops::as_matrix(call.output),
                          .logsumexp = call.kept[0],
                          .workspace = call.workspace,
                          .dropout = options_.dropout.site(call.unit.dropout)},
                         call.stream);
}

void AttentionLayer::backward(const LayerCall& call) const {
  const Projections in = projections(call.inputs);
  std::vector<TensorView> gradients;
  for (const InputGradient& gradient : call.input_gradients) gradients.push_back(gradient.values);
  const Projections out = projections(gradients);
  ops::attention_backward({.sizes = sizes(call.unit.shape),
                           .rule = options_.rule,
                           .query = in.query,
                           .key = in.key,
                           .value = in.value,
                           .output = ops::as_matrix(call.output),
                           .logsumexp = call.kept[0],
                           .output_gradient = ops::as_matrix(call.output_gradient),
                           .query_gradient = out.query,
                           .key_gradient = out.key,
                           .value_gradient = out.value,
                           .workspace = call.workspace,
                           .dropout = options_.dropout.site(call.unit.dropout)},
                          call.stream);
}

}  // namespace dstrain::model
