#include "runtime/model/layers/attention_layer.h"

#include <algorithm>

#include "runtime/ops/cached_attention.h"
#include "runtime/ops/checks.h"

namespace dstrain::model {

/// (B T, H D) and two of (B T, K D), possibly with strided rows.
struct AttentionLayer::Projections {
  TensorView query;
  TensorView key;
  TensorView value;
};

ops::AttentionSizes AttentionLayer::sizes(BatchShape shape) const {
  return {.sequences = shape.sequences,
          .tokens = shape.tokens,
          .keys = options_.keys == Axis::source    ? shape.source
                  : shape.context > 0 && decodes() ? shape.context
                                                   : shape.tokens,
          .heads = options_.heads,
          .kv_heads = options_.kv_heads,
          .head_size = options_.head_size};
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

/// The bounds and bias of the scores of a call; may be empty.
struct AttentionLayer::Sight {
  TensorView key_count;
  TensorView first_key;
  TensorView bias;
};

AttentionLayer::Sight AttentionLayer::sight(const LayerCall& call) const {
  return {.key_count = options_.keys == Axis::source ? call.unit.source_count : TensorView{},
          .first_key = options_.rule.causal ? call.unit.document_start : TensorView{},
          .bias = options_.bias ? call.value(*options_.bias) : TensorView{}};
}

std::vector<CachedSpec> AttentionLayer::cached(const CacheShape& shape) const {
  if (!decodes()) return {};
  const std::int64_t columns = options_.kv_heads * options_.head_size;
  std::int64_t rows = shape.source;
  if (options_.keys == Axis::target) {
    // A ring of whole tiles, as kernels read them.
    const std::int64_t window = options_.rule.window;
    const std::int64_t ring = round_up(window - 1 + shape.chunk, 64);
    rows = window > 0 ? std::min(shape.positions, ring) : shape.positions;
  }
  const CachedSpec spec{{shape.slots, rows, columns}, options_.keys};
  return {spec, spec};
}

Bytes AttentionLayer::forward_workspace(BatchShape shape) const {
  if (shape.context > 0 && decodes()) {
    return ops::cached_attention_workspace(sizes(shape), options_.rule, device_);
  }
  return ops::attention_forward_workspace(sizes(shape), options_.rule, device_);
}

void AttentionLayer::append(const LayerCall& call, const Projections& in) const {
  if (in.key.empty()) return;
  ops::append_cache({.head_size = options_.head_size,
                     .rotary = key_rotary(),
                     .key = in.key,
                     .value = in.value,
                     .cache = {call.cached[0], call.cached[1]},
                     .places = call.unit.cache->places},
                    call.stream);
}

void AttentionLayer::attend_to_cache(const LayerCall& call, const TensorView& query) const {
  const Sight seen = sight(call);
  ops::cached_attention({.sizes = sizes(call.shape),
                         .rule = options_.rule,
                         .query = query,
                         .cache = {call.cached[0], call.cached[1]},
                         .places = call.unit.cache->places,
                         .key_count = seen.key_count,
                         .bias = seen.bias,
                         .output = ops::as_matrix(call.output),
                         .workspace = call.workspace},
                        call.stream);
}

void AttentionLayer::forward(const LayerCall& call) const {
  const Projections in = projections(call.inputs);
  if (!call.cached.empty()) append(call, in);
  if (call.shape.context > 0 && !call.cached.empty()) return attend_to_cache(call, in.query);
  const Sight seen = sight(call);
  ops::attention_forward({.sizes = sizes(call.shape),
                          .rule = options_.rule,
                          .query = in.query,
                          .key = in.key,
                          .value = in.value,
                          .key_count = seen.key_count,
                          .first_key = seen.first_key,
                          .bias = seen.bias,
                          .output = ops::as_matrix(call.output),
                          .logsumexp = call.kept[0],
                          .workspace = call.workspace,
                          .dropout = options_.dropout.site(call.unit.dropout)},
                         call.stream);
}

void AttentionLayer::backward(const LayerCall& call) const {
  const Projections in = projections(call.inputs);
  const Sight seen = sight(call);
  const GradientTarget bias = options_.bias ? call.gradient(*options_.bias) : GradientTarget{};
  std::vector<TensorView> gradients;
  for (const InputGradient& gradient : call.input_gradients) gradients.push_back(gradient.values);
  const Projections out = projections(gradients);
  ops::attention_backward({.sizes = sizes(call.shape),
                           .rule = options_.rule,
                           .query = in.query,
                           .key = in.key,
                           .value = in.value,
                           .key_count = seen.key_count,
                           .first_key = seen.first_key,
                           .bias = seen.bias,
                           .output = ops::as_matrix(call.output),
                           .logsumexp = call.kept[0],
                           .output_gradient = ops::as_matrix(call.output_gradient),
                           .query_gradient = out.query,
                           .key_gradient = out.key,
                           .value_gradient = out.value,
                           .bias_gradient = bias.values,
                           .accumulate_bias = bias.accumulate,
                           .workspace = call.workspace,
                           .dropout = options_.dropout.site(call.unit.dropout)},
                          call.stream);
}

}  // namespace dstrain::model
