#include "runtime/model/gpt2_block.h"

#include <cmath>

#include "runtime/model/gpt2_block_dropout.h"
#include "runtime/model/gpt2_block_parts.h"
#include "runtime/model/linear.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/gelu.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::model {
namespace {

/// What of a block its calls have in common.
struct Description {
  const Gpt2Config& config;
  const UnitSpec& spec;
};

ops::LayerNormArgs norm_1(const UnitCall& call, const Gpt2BlockSaved& saved, TensorView output) {
  return {.input = call.inputs[0],
          .weight = call.parameters[ln_1_weight],
          .bias = call.parameters[ln_1_bias],
          .mean = saved.mean_1,
          .rstd = saved.rstd_1,
          .output = output};
}

ops::LayerNormArgs norm_2(const UnitCall& call, const Gpt2BlockSaved& saved, TensorView output) {
  return {.input = saved.residual,
          .weight = call.parameters[ln_2_weight],
          .bias = call.parameters[ln_2_bias],
          .mean = saved.mean_2,
          .rstd = saved.rstd_2,
          .output = output};
}

/// residual = input + branch of attention.
void attention_forward(const Description& block,
                       const UnitCall& call,
                       const Gpt2BlockSaved& saved,
                       const Gpt2BlockForwardSpace& space,
                       StreamView stream) {
  ops::LayerNormArgs norm = norm_1(call, saved, space.normed);
  norm.eps = block.config.layer_norm_epsilon;
  ops::layer_norm_forward(norm, stream);
  linear_forward({space.normed, weight_of(call, block.spec, c_attn_weight),
                  call.parameters[c_attn_bias], saved.qkv},
                 space.products, stream);
  ops::attention_forward(
      {.qkv = saved.qkv,
       .output = saved.attention,
       .logsumexp = saved.logsumexp,
       .workspace = space.keys,
       .dropout = dropout_site(call.dropout, Gpt2DropoutPlace::attention, block.config.attn_pdrop)},
      stream);
  linear_forward({saved.attention, weight_of(call, block.spec, attn_c_proj_weight),
                  call.parameters[attn_c_proj_bias], saved.residual},
                 space.products, stream);
  ops::dropout({.input = saved.residual,
                .residual = call.inputs[0],
                .output = saved.residual,
                .site = dropout_site(call.dropout, Gpt2DropoutPlace::attention_branch,
                                     block.config.resid_pdrop)},
               stream);
}

/// output = residual + branch of the MLP.
void mlp_forward(const Description& block,
                 const UnitCall& call,
                 const Gpt2BlockSaved& saved,
                 const Gpt2BlockForwardSpace& space,
                 StreamView stream) {
  ops::LayerNormArgs norm = norm_2(call, saved, space.normed);
  norm.eps = block.config.layer_norm_epsilon;
  ops::layer_norm_forward(norm, stream);
  linear_forward({space.normed, weight_of(call, block.spec, c_fc_weight),
                  call.parameters[c_fc_bias], saved.inner},
                 space.products, stream);
  ops::gelu_forward(saved.inner, space.active, stream);
  linear_forward({space.active, weight_of(call, block.spec, mlp_c_proj_weight),
                  call.parameters[mlp_c_proj_bias], call.outputs[0]},
                 space.products, stream);
  ops::dropout(
      {.input = call.outputs[0],
       .residual = saved.residual,
       .output = call.outputs[0],
       .site = dropout_site(call.dropout, Gpt2DropoutPlace::mlp_branch, block.config.resid_pdrop)},
      stream);
}

/// The gradient of a branch from the gradient of the sum it joined.
TensorView branch_gradient(const Gpt2BlockBackwardSpace& space,
                           TensorView gradient,
                           const ops::DropoutSite& site,
                           StreamView stream) {
  if (!site.active()) return gradient;
  ops::dropout({.input = gradient, .residual = {}, .output = space.branch, .site = site}, stream);
  return space.branch;
}

/// Leaves the gradient of the residual after attention in space.residual.
void mlp_backward(const Description& block,
                  const UnitCall& call,
                  const Gpt2BlockSaved& saved,
                  const Gpt2BlockBackwardSpace& space,
                  StreamView stream) {
  const auto targets = call.parameter_gradients;
  const TensorView output_gradient = call.output_gradients[0];
  const TensorView branch = branch_gradient(
      space, output_gradient,
      dropout_site(call.dropout, Gpt2DropoutPlace::mlp_branch, block.config.resid_pdrop), stream);
  linear_backward_input({branch, weight_of(call, block.spec, mlp_c_proj_weight), space.inner},
                        space.products, stream);
  ops::gelu_backward(saved.inner, space.inner, space.active, stream);
  linear_backward({space.active, branch, weight_of(call, block.spec, mlp_c_proj_weight),
                   targets[mlp_c_proj_bias]},
                  space.products, stream);
  ops::layer_norm_recompute(norm_2(call, saved, space.normed), stream);
  linear_backward({space.normed, space.inner, weight_of(call, block.spec, c_fc_weight),
                   targets[c_fc_bias], true},
                  space.products, stream);
  ops::layer_norm_backward({.input = saved.residual,
                            .weight = call.parameters[ln_2_weight],
                            .mean = saved.mean_2,
                            .rstd = saved.rstd_2,
                            .output_gradient = space.normed,
                            .residual = output_gradient,
                            .input_gradient = space.residual,
                            .weight_gradient = targets[ln_2_weight].values,
                            .bias_gradient = targets[ln_2_bias].values,
                            .accumulate_weight = targets[ln_2_weight].accumulate,
                            .accumulate_bias = targets[ln_2_bias].accumulate},
                           stream);
}

/// From space.residual to the gradient of the block's input.
void attention_backward(const Description& block,
                        const UnitCall& call,
                        const Gpt2BlockSaved& saved,
                        const Gpt2BlockBackwardSpace& space,
                        StreamView stream) {
  const auto targets = call.parameter_gradients;
  const TensorView branch = branch_gradient(
      space, space.residual,
      dropout_site(call.dropout, Gpt2DropoutPlace::attention_branch, block.config.resid_pdrop),
      stream);
  linear_backward_input({branch, weight_of(call, block.spec, attn_c_proj_weight), space.normed},
                        space.products, stream);
  linear_backward({saved.attention, branch, weight_of(call, block.spec, attn_c_proj_weight),
                   targets[attn_c_proj_bias]},
                  space.products, stream);
  ops::attention_backward(
      {.qkv = saved.qkv,
       .output = saved.attention,
       .logsumexp = saved.logsumexp,
       .output_gradient = space.normed,
       .qkv_gradient = space.qkv,
       .workspace = space.attention,
       .dropout = dropout_site(call.dropout, Gpt2DropoutPlace::attention, block.config.attn_pdrop)},
      stream);
  ops::layer_norm_recompute(norm_1(call, saved, space.normed), stream);
  linear_backward({space.normed, space.qkv, weight_of(call, block.spec, c_attn_weight),
                   targets[c_attn_bias], true},
                  space.products, stream);
  const GradientTarget& input = call.input_gradients[0];
  ops::layer_norm_backward({.input = call.inputs[0],
                            .weight = call.parameters[ln_1_weight],
                            .mean = saved.mean_1,
                            .rstd = saved.rstd_1,
                            .output_gradient = space.normed,
                            .residual = space.residual,
                            .input_gradient = input.values,
                            .weight_gradient = targets[ln_1_weight].values,
                            .bias_gradient = targets[ln_1_bias].values,
                            .accumulate_input = input.accumulate,
                            .accumulate_weight = targets[ln_1_weight].accumulate,
                            .accumulate_bias = targets[ln_1_bias].accumulate},
                           stream);
}

UnitSpec make_spec(const Gpt2Config& config,
                   std::int64_t layer,
                   DType dtype,
                   std::int64_t in_splits) {
  const std::int64_t channels = config.n_embd;
  const std::int64_t inner = config.n_inner;
  const float narrower = std::sqrt(2.0F * static_cast<float>(config.n_layer));
  const ParameterInit zeros{ParameterInit::Kind::zeros};
  const ParameterInit ones{ParameterInit::Kind::ones};
  const ParameterInit normal{ParameterInit::Kind::normal, config.initializer_range};
  const ParameterInit narrow{ParameterInit::Kind::normal, config.initializer_range / narrower};
  UnitSpec spec;
  spec.name = fmt::format("h.{}", layer);
  const auto add = [&spec](const char* name, Shape shape, ParameterInit init) {
    spec.parameters.push_back({fmt::format("{}.{}", spec.name, name), shape, init});
  };
  add("ln_1.weight", {channels}, ones);
  add("ln_1.bias", {channels}, zeros);
  add("attn.c_attn.weight", {channels, 3 * channels}, normal);
  add("attn.c_attn.bias", {3 * channels}, zeros);
  add("attn.c_proj.weight", {channels, channels}, narrow);
  add("attn.c_proj.bias", {channels}, zeros);
  add("ln_2.weight", {channels}, ones);
  add("ln_2.bias", {channels}, zeros);
  add("mlp.c_fc.weight", {channels, inner}, normal);
  add("mlp.c_fc.bias", {inner}, zeros);
  add("mlp.c_proj.weight", {inner, channels}, narrow);
  add("mlp.c_proj.bias", {channels}, zeros);
  for (const Gpt2BlockParameter weight :
       {c_attn_weight, attn_c_proj_weight, c_fc_weight, mlp_c_proj_weight}) {
    if (in_splits == 1) break;
    const auto tiles = split_rows(weight, spec.parameters[weight].shape[0], in_splits);
    spec.tiles.insert(spec.tiles.end(), tiles.begin(), tiles.end());
  }
  spec.reads = {fmt::format("hidden{}", layer)};
  spec.writes = {{fmt::format("hidden{}", layer + 1), channels, dtype}};
  return spec;
}

}  // namespace

Gpt2Block::Gpt2Block(const Gpt2Config& config,
                     std::int64_t layer,
                     DType dtype,
                     std::int64_t in_splits)
    : config_(config),
      dtype_(dtype),
      in_splits_(in_splits),
      spec_(make_spec(config, layer, dtype, in_splits)) {}

Gpt2BlockSizes Gpt2Block::sizes_of(BatchShape shape) const {
  return {config_, shape, dtype_, in_splits_};
}

UnitMemory Gpt2Block::memory(BatchShape shape) const {
  const Gpt2BlockSizes sizes = sizes_of(shape);
  Arena saved;
  Arena forward;
  Arena backward;
  Gpt2BlockSaved(saved, sizes);
  Gpt2BlockForwardSpace(forward, sizes);
  Gpt2BlockBackwardSpace(backward, sizes);
  return {saved.used(), forward.used(), backward.used()};
}

void Gpt2Block::forward(const UnitCall& call, StreamView stream) const {
  const Gpt2BlockSizes sizes = sizes_of(call.shape);
  Arena saved_arena(call.saved);
  Arena workspace(call.workspace);
  const Gpt2BlockSaved saved(saved_arena, sizes);
  const Gpt2BlockForwardSpace space(workspace, sizes);
  attention_forward({config_, spec_}, call, saved, space, stream);
  mlp_forward({config_, spec_}, call, saved, space, stream);
}

void Gpt2Block::backward(const UnitCall& call, StreamView stream) const {
  const Gpt2BlockSizes sizes = sizes_of(call.shape);
  Arena saved_arena(call.saved);
  Arena workspace(call.workspace);
  const Gpt2BlockSaved saved(saved_arena, sizes);
  const Gpt2BlockBackwardSpace space(workspace, sizes);
  mlp_backward({config_, spec_}, call, saved, space, stream);
  attention_backward({config_, spec_}, call, saved, space, stream);
}

}  // namespace dstrain::model
