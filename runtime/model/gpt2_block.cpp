#include "runtime/model/gpt2_block.h"

#include <cmath>

#include "runtime/model/gpt2_block_dropout.h"
#include "runtime/model/gpt2_block_parts.h"
#include "runtime/model/linear.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/residual_norm.h"

namespace dstrain::model {
namespace {

/// One norm of a block.
struct Norm {
  TensorView input;
  TensorView mean;
  TensorView rstd;
  Gpt2BlockParameter weight;
  Gpt2BlockParameter bias;
};

/// A call of a block: what forward and backward have in common.
struct Pass {
  const Gpt2Config& config;
  const UnitSpec& spec;
  const UnitCall& call;
  const Gpt2BlockSaved& saved;
  StreamView stream;

  [[nodiscard]] Norm norm_1() const {
    return {call.inputs[0], saved.mean_1, saved.rstd_1, ln_1_weight, ln_1_bias};
  }
  [[nodiscard]] Norm norm_2() const {
    return {saved.residual, saved.mean_2, saved.rstd_2, ln_2_weight, ln_2_bias};
  }
  [[nodiscard]] ops::LayerNormArgs args(const Norm& norm, TensorView output) const {
    return {.input = norm.input,
            .weight = call.parameters[norm.weight],
            .bias = call.parameters[norm.bias],
            .mean = norm.mean,
            .rstd = norm.rstd,
            .output = output,
            .eps = config.layer_norm_epsilon};
  }
  /// `residual`: the gradient that passes the norm by.
  [[nodiscard]] ops::LayerNormBackwardArgs args(const Norm& norm,
                                                TensorView output_gradient,
                                                TensorView residual,
                                                const GradientTarget& input) const {
    const GradientTarget& weight = call.parameter_gradients[norm.weight];
    const GradientTarget& bias = call.parameter_gradients[norm.bias];
    return {.input = norm.input,
            .weight = call.parameters[norm.weight],
            .mean = norm.mean,
            .rstd = norm.rstd,
            .output_gradient = output_gradient,
            .residual = residual,
            .input_gradient = input.values,
            .weight_gradient = weight.values,
            .bias_gradient = bias.values,
            .accumulate_input = input.accumulate,
            .accumulate_weight = weight.accumulate,
            .accumulate_bias = bias.accumulate};
  }
  [[nodiscard]] LinearWeight weight(Gpt2BlockParameter parameter) const {
    return weight_of(call, spec, parameter);
  }
  [[nodiscard]] ops::DropoutSite site(Gpt2DropoutPlace place) const {
    return dropout_site(
        call.dropout, place,
        place == Gpt2DropoutPlace::attention ? config.attn_pdrop : config.resid_pdrop);
  }
};

void run_forward(const Pass& pass, const Gpt2BlockForwardSpace& space) {
  const UnitCall& call = pass.call;
  const Gpt2BlockSaved& saved = pass.saved;
  const StreamView stream = pass.stream;
  ops::layer_norm_forward(pass.args(pass.norm_1(), space.normed), stream);
  linear_forward(
      {space.normed, pass.weight(c_attn_weight), call.parameters[c_attn_bias], saved.qkv},
      space.products, stream);
  ops::attention_forward({.qkv = saved.qkv,
                          .output = saved.attention,
                          .logsumexp = saved.logsumexp,
                          .workspace = space.keys,
                          .dropout = pass.site(Gpt2DropoutPlace::attention)},
                         stream);
  linear_forward({saved.attention, pass.weight(attn_c_proj_weight),
                  call.parameters[attn_c_proj_bias], saved.residual},
                 space.products, stream);
  ops::residual_norm_forward({.join = {.input = saved.residual,
                                       .residual = call.inputs[0],
                                       .output = saved.residual,
                                       .site = pass.site(Gpt2DropoutPlace::attention_branch)},
                              .norm = pass.args(pass.norm_2(), space.normed)},
                             stream);
  linear_forward({space.normed, pass.weight(c_fc_weight), call.parameters[c_fc_bias], saved.inner,
                  space.active},
                 space.products, stream);
  linear_forward({space.active, pass.weight(mlp_c_proj_weight), call.parameters[mlp_c_proj_bias],
                  call.outputs[0]},
                 space.products, stream);
  ops::dropout({.input = call.outputs[0],
                .residual = saved.residual,
                .output = call.outputs[0],
                .site = pass.site(Gpt2DropoutPlace::mlp_branch)},
               stream);
}

/// Leaves the gradient of the residual after attention in space.residual and, when the branch of
/// attention drops, that of the branch in space.branch.
void mlp_backward(const Pass& pass, const Gpt2BlockBackwardSpace& space) {
  const UnitCall& call = pass.call;
  const Gpt2BlockSaved& saved = pass.saved;
  const StreamView stream = pass.stream;
  const TensorView output_gradient = call.output_gradients[0];
  const ops::DropoutSite site = pass.site(Gpt2DropoutPlace::mlp_branch);
  const TensorView branch = site.active() ? space.branch : output_gradient;
  if (site.active()) {
    ops::dropout({.input = output_gradient, .residual = {}, .output = branch, .site = site},
                 stream);
  }
  linear_backward_input(
      {branch, pass.weight(mlp_c_proj_weight), space.inner, saved.inner, space.active},
      space.products, stream);
  linear_backward({space.active, branch, pass.weight(mlp_c_proj_weight),
                   call.parameter_gradients[mlp_c_proj_bias]},
                  space.products, stream);
  ops::layer_norm_recompute(pass.args(pass.norm_2(), space.normed), stream);
  linear_backward({space.normed, space.inner, pass.weight(c_fc_weight),
                   call.parameter_gradients[c_fc_bias], true},
                  space.products, stream);
  ops::residual_norm_backward(
      {.norm = pass.args(pass.norm_2(), space.normed, output_gradient, {space.residual}),
       .branch_gradient = space.branch,
       .site = pass.site(Gpt2DropoutPlace::attention_branch)},
      stream);
}

/// From there to the gradient of the block's input.
void attention_backward(const Pass& pass, const Gpt2BlockBackwardSpace& space) {
  const UnitCall& call = pass.call;
  const Gpt2BlockSaved& saved = pass.saved;
  const StreamView stream = pass.stream;
  const bool drops = pass.site(Gpt2DropoutPlace::attention_branch).active();
  const TensorView branch = drops ? space.branch : space.residual;
  linear_backward_input({branch, pass.weight(attn_c_proj_weight), space.normed}, space.products,
                        stream);
  linear_backward({saved.attention, branch, pass.weight(attn_c_proj_weight),
                   call.parameter_gradients[attn_c_proj_bias]},
                  space.products, stream);
  ops::attention_backward({.qkv = saved.qkv,
                           .output = saved.attention,
                           .logsumexp = saved.logsumexp,
                           .output_gradient = space.normed,
                           .qkv_gradient = space.qkv,
                           .workspace = space.attention,
                           .dropout = pass.site(Gpt2DropoutPlace::attention)},
                          stream);
  ops::layer_norm_recompute(pass.args(pass.norm_1(), space.normed), stream);
  linear_backward({space.normed, space.qkv, pass.weight(c_attn_weight),
                   call.parameter_gradients[c_attn_bias], true},
                  space.products, stream);
  ops::layer_norm_backward(
      pass.args(pass.norm_1(), space.normed, space.residual, call.input_gradients[0]), stream);
}

UnitSpec make_spec(const Gpt2Config& config, std::int64_t layer, const UnitOptions& options) {
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
    if (options.in_splits == 1) break;
    const auto tiles = split_rows(weight, spec.parameters[weight].shape[0], options.in_splits);
    spec.tiles.insert(spec.tiles.end(), tiles.begin(), tiles.end());
  }
  spec.reads = {fmt::format("hidden{}", layer)};
  spec.writes = {{fmt::format("hidden{}", layer + 1), channels, options.dtype}};
  return spec;
}

}  // namespace

Gpt2Block::Gpt2Block(const Gpt2Config& config, std::int64_t layer, const UnitOptions& options)
    : config_(config), options_(options), spec_(make_spec(config, layer, options)) {}

Gpt2BlockSizes Gpt2Block::sizes_of(BatchShape shape) const {
  return {config_, shape, options_};
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
  run_forward({config_, spec_, call, saved, stream}, space);
}

void Gpt2Block::backward(const UnitCall& call, StreamView stream) const {
  const Gpt2BlockSizes sizes = sizes_of(call.shape);
  Arena saved_arena(call.saved);
  Arena workspace(call.workspace);
  const Gpt2BlockSaved saved(saved_arena, sizes);
  const Gpt2BlockBackwardSpace space(workspace, sizes);
  const Pass pass{config_, spec_, call, saved, stream};
  mlp_backward(pass, space);
  attention_backward(pass, space);
}

}  // namespace dstrain::model
