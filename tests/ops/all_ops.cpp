#include "tests/ops/all_ops.h"

#include "runtime/numeric/exact_sum.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/add.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/cached_attention.h"
#include "runtime/ops/classifier.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/copy_finite.h"
#include "runtime/ops/copy_rows.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/ops/matmul_activation.h"
#include "runtime/ops/mean_loss.h"
#include "runtime/ops/residual_norm.h"
#include "runtime/ops/round_stochastic.h"
#include "runtime/ops/scale.h"
#include "runtime/ops/square_sum.h"
#include "runtime/ops/update.h"
#include "runtime/ops/weight_gradient.h"
#include "tests/support/every_rule.h"

namespace dstrain::test {
namespace {

constexpr std::int64_t sequences = 3;
constexpr std::int64_t tokens = 77;
constexpr std::int64_t channels = 60;
constexpr std::int64_t rows = sequences * tokens;

struct Tensors : DeviceTensors {
  using DeviceTensors::DeviceTensors;
  TensorView activation(std::int64_t columns) { return random({sequences, tokens, columns}); }
};

/// Two heads of queries for each of keys; half of each head turns.
void run_attention(Tensors& t,
                   std::int64_t head_size,
                   const ops::RelativeBuckets& buckets,
                   StreamView stream) {
  constexpr std::int64_t kv_heads = 3;
  const std::int64_t narrow = kv_heads * head_size;
  const std::int64_t wide = 2 * narrow;
  const ops::AttentionSizes sizes{sequences, tokens, tokens, 2 * kv_heads, kv_heads, head_size};
  const ops::AttentionRule rule{
      .window = 70, .divisor = 4, .rotary = {10, 1, {1.0F, 0.5F, 0.1F}}, .buckets = buckets};
  const bool biased = buckets.active();
  const DeviceKind device = stream.device().kind;
  const ops::DropoutSite site{.rate = 0.1F, .seed = 5, .counter = t.counter(1, 2)};
  const TensorView packed = t.matrix(rows, wide + 2 * narrow);
  const TensorView gradient = t.matrix(rows, wide + 2 * narrow);
  ops::AttentionArgs forward{.sizes = sizes,
                             .rule = rule,
                             .query = packed.columns(0, wide),
                             .key = packed.columns(wide, narrow),
                             .value = packed.columns(wide + narrow, narrow),
                             .first_key = t.zeros(DType::i32, {sequences, tokens}),
                             .bias = biased ? t.matrix(buckets.count, 2 * kv_heads) : TensorView(),
                             .output = t.matrix(rows, wide),
                             .logsumexp = t.f32({sequences, 2 * kv_heads, tokens}),
                             .dropout = site};
  forward.workspace = t.workspace(ops::attention_forward_workspace(sizes, rule, device));
  ops::attention_forward(forward, stream);
  const Bytes bytes = ops::attention_backward_workspace(sizes, rule, device);
  ops::attention_backward(
      {.sizes = sizes,
       .rule = rule,
       .query = forward.query,
       .key = forward.key,
       .value = forward.value,
       .first_key = forward.first_key,
       .bias = forward.bias,
       .output = forward.output,
       .logsumexp = forward.logsumexp,
       .output_gradient = t.matrix(rows, wide),
       .query_gradient = gradient.columns(0, wide),
       .key_gradient = gradient.columns(wide, narrow),
       .value_gradient = gradient.columns(wide + narrow, narrow),
       .bias_gradient = biased ? t.f32({buckets.count, 2 * kv_heads}) : TensorView(),
       .workspace = t.workspace(bytes),
       .dropout = site},
      stream);
}

/// A token more of each sequence, in a ring.
void run_cached_attention(Tensors& t, std::int64_t head_size, StreamView stream) {
  constexpr std::int64_t kv_heads = 3;
  constexpr std::int64_t ring = 64;
  const std::int64_t narrow = kv_heads * head_size;
  const ops::AttentionSizes sizes{sequences, 2, 100, 2 * kv_heads, kv_heads, head_size};
  const ops::AttentionRule rule{.window = 50, .divisor = 4, .rotary = {10, 1, {1.0F, 0.5F, 0.1F}}};
  const ops::KeyValueCache cache{t.random({sequences + 1, ring, narrow}),
                                 t.random({sequences + 1, ring, narrow})};
  const auto each = [&](const auto& value) {
    return t.ramp({sequences}, value);
  };
  const ops::CachePlaces places{each([](std::int64_t i) { return i + 1; }),
                                each([](std::int64_t i) { return 40 * i; }),
                                each([](std::int64_t i) { return 40 * i + 2; })};
  ops::append_cache({.head_size = head_size,
                     .rotary = rule.rotary,
                     .key = t.matrix(2 * sequences, narrow),
                     .value = t.matrix(2 * sequences, narrow),
                     .cache = cache,
                     .places = places},
                    stream);
  ops::cached_attention({.sizes = sizes,
                         .rule = rule,
                         .query = t.matrix(2 * sequences, 2 * narrow),
                         .cache = cache,
                         .places = places,
                         .output = t.matrix(2 * sequences, 2 * narrow),
                         .workspace = t.workspace(
                             ops::cached_attention_workspace(sizes, rule, stream.device().kind))},
                        stream);
}

/// What a norm's passes have in common.
struct Norm {
  Norm(Tensors& t, TensorView of)
      : input(of), weight(t.vector(channels)), mean(t.f32({rows})), rstd(t.f32({rows})) {}
  [[nodiscard]] ops::LayerNormArgs forward(Tensors& t) const {
    return {.input = input,
            .weight = weight,
            .bias = t.vector(channels),
            .mean = mean,
            .rstd = rstd,
            .output = t.activation(channels),
            .eps = 1e-5F};
  }
  [[nodiscard]] ops::LayerNormBackwardArgs backward(Tensors& t) const {
    return {.input = input,
            .weight = weight,
            .mean = mean,
            .rstd = rstd,
            .output_gradient = t.activation(channels),
            .residual = t.activation(channels),
            .input_gradient = t.activation(channels),
            .weight_gradient = t.f32({channels}),
            .bias_gradient = t.f32({channels})};
  }
  TensorView input;
  TensorView weight;
  TensorView mean;
  TensorView rstd;
};

void run_layer_norm(Tensors& t, StreamView stream) {
  const Norm norm(t, t.activation(channels));
  ops::LayerNormArgs forward = norm.forward(t);
  ops::layer_norm_forward(forward, stream);
  forward.output = t.activation(channels);
  ops::layer_norm_recompute(forward, stream);
  ops::layer_norm_backward(norm.backward(t), stream);
}

/// Rows of all widths for which a GPU has kernels of their own, with packs and without.
void run_wide_norms(Tensors& t, StreamView stream) {
  constexpr std::int64_t few = 3;
  for (const std::int64_t columns : {61, 64, 600, 601, 1200, 1201, 3000, 3001, 4200, 4201}) {
    const ops::LayerNormArgs forward{.input = t.matrix(few, columns),
                                     .weight = t.vector(columns),
                                     .bias = t.vector(columns),
                                     .mean = t.f32({few}),
                                     .rstd = t.f32({few}),
                                     .output = t.matrix(few, columns),
                                     .eps = 1e-5F};
    ops::layer_norm_forward(forward, stream);
    ops::LayerNormBackwardArgs backward{.input = forward.input,
                                        .weight = forward.weight,
                                        .mean = forward.mean,
                                        .rstd = forward.rstd,
                                        .output_gradient = t.matrix(few, columns),
                                        .residual = t.matrix(few, columns),
                                        .input_gradient = t.matrix(few, columns),
                                        .weight_gradient = {},
                                        .bias_gradient = {}};
    ops::layer_norm_backward(backward, stream);
    backward.weight_gradient = t.f32({columns});
    backward.bias_gradient = t.f32({columns});
    ops::layer_norm_backward(backward, stream);
    const TensorView sum = t.random({1, few, columns});
    ops::residual_norm_forward({.join = {.input = t.random({1, few, columns}),
                                         .residual = t.random({1, few, columns}),
                                         .output = sum,
                                         .site = {}},
                                .norm = {.input = sum,
                                         .weight = forward.weight,
                                         .bias = forward.bias,
                                         .mean = t.f32({few}),
                                         .rstd = t.f32({few}),
                                         .output = t.random({1, few, columns}),
                                         .eps = 1e-5F}},
                               stream);
  }
}

void run_residual_norm(Tensors& t, StreamView stream) {
  const ops::DropoutSite site{.rate = 0.3F, .seed = 1, .counter = t.counter(2, 3)};
  const Norm norm(t, t.activation(channels));
  ops::residual_norm_forward({.join = {.input = t.activation(channels),
                                       .residual = t.activation(channels),
                                       .output = norm.input,
                                       .site = site},
                              .norm = norm.forward(t)},
                             stream);
  ops::residual_norm_backward(
      {.norm = norm.backward(t), .branch_gradient = t.activation(channels), .site = site}, stream);
}

void run_embedding(Tensors& t, StreamView stream) {
  const TensorView batch = t.numbers({sequences, tokens}, 20);
  ops::embedding_forward({.tokens = batch,
                          .first_position = t.zeros(DType::i32, {sequences, tokens}),
                          .token_table = t.vector(20 * channels).reshaped({20, channels}),
                          .position_table = t.vector(80 * channels).reshaped({80, channels}),
                          .output = t.activation(channels)},
                         stream);
  ops::embedding_backward({.tokens = batch,
                           .first_position = t.zeros(DType::i32, {sequences, tokens}),
                           .output_gradient = t.activation(channels),
                           .token_gradient = t.f32({20, channels}),
                           .position_gradient = t.f32({80, channels})},
                          stream);
  ops::embedding_backward({.tokens = batch,
                           .output_gradient = t.activation(channels),
                           .token_gradient = {},
                           .position_gradient = t.f32({80, channels})},
                          stream);
}

void run_activation(Tensors& t, ops::Activation kind, const TensorView& input, StreamView stream) {
  const TensorView factor = t.activation(400);
  ops::activation_forward(
      {.kind = kind, .input = input, .factor = factor, .output = t.activation(400)}, stream);
  const TensorView gradient = t.activation(400);
  ops::activation_backward({.kind = kind,
                            .input = input,
                            .factor = factor,
                            .output_gradient = gradient,
                            .input_gradient = gradient,
                            .factor_gradient = t.activation(400),
                            .output = t.activation(400)},
                           stream);
}

/// A gate and a factor in one tensor.
void run_packed_activation(Tensors& t, StreamView stream) {
  const TensorView in = t.matrix(rows, 66);
  const TensorView gradient = t.matrix(rows, 66);
  ops::activation_forward({.kind = ops::Activation::silu,
                           .input = in.columns(0, 33),
                           .factor = in.columns(33, 33),
                           .output = t.matrix(rows, 33)},
                          stream);
  ops::activation_backward({.kind = ops::Activation::silu,
                            .input = in.columns(0, 33),
                            .factor = in.columns(33, 33),
                            .output_gradient = t.matrix(rows, 33),
                            .input_gradient = gradient.columns(0, 33),
                            .factor_gradient = gradient.columns(33, 33)},
                           stream);
}

void run_others(Tensors& t, StreamView stream) {
  run_packed_activation(t, stream);
  const TensorView wide = t.activation(400);
  for (const auto kind : {ops::Activation::gelu_tanh, ops::Activation::gelu,
                          ops::Activation::quick_gelu, ops::Activation::silu}) {
    run_activation(t, kind, wide, stream);
  }
  ops::dropout({.input = wide,
                .residual = t.activation(400),
                .output = t.activation(400),
                .site = {.rate = 0.3F, .seed = 1, .counter = t.counter(2, 3)}},
               stream);
}

void run_products(Tensors& t, StreamView stream) {
  ops::MatmulArgs product{.a = t.matrix(rows, channels),
                          .b = t.matrix(channels, 130),
                          .out = t.matrix(rows, 130),
                          .bias = t.vector(130)};
  product.workspace = t.workspace(product);
  ops::matmul(product, stream);
  ops::matmul_activation_forward({.product = product, .active = t.matrix(rows, 130)}, stream);
  ops::MatmulArgs through{.a = t.matrix(rows, channels),
                          .b = t.matrix(130, channels),
                          .out = t.matrix(rows, 130),
                          .b_transposed = true};
  through.workspace = t.workspace(through);
  ops::matmul_activation_backward(
      {.product = through, .input = product.out, .active = t.matrix(rows, 130)}, stream);
  ops::MatmulArgs gradient{.a = product.a,
                           .b = product.out,
                           .out = t.f32({channels, 130}),
                           .a_transposed = true,
                           .accumulate = true};
  gradient.workspace = t.workspace(gradient);
  ops::weight_gradient({.product = gradient, .bias_gradient = t.f32({130})}, stream);
}

void run_classifier(Tensors& t, StreamView stream) {
  const ops::ClassifierSizes sizes{rows, channels, 500, t.dtype()};
  const TensorView input = t.matrix(rows, channels);
  const TensorView weight = t.matrix(500, channels);
  const TensorView workspace = t.workspace(ops::classifier_workspace(sizes, stream.device().kind));
  ops::classifier_logits(
      {.input = input, .weight = weight, .logits = t.f32({rows, 500}), .workspace = workspace},
      stream);
  ops::ClassifierLossArgs loss{.input = input,
                               .weight = weight,
                               .labels = t.numbers({rows}, 500),
                               .loss_sum = t.zeros(DType::f64, {1}),
                               .workspace = workspace};
  ops::classifier_loss(loss, stream);
  loss.label_weight = t.f32({1});
  loss.input_gradient = t.matrix(rows, channels);
  loss.weight_gradient = t.f32({500, channels});
  ops::classifier_loss(loss, stream);
}

void run_mean_loss(Tensors& t, StreamView stream) {
  ops::MeanLossArgs loss{.values = t.matrix(rows, channels),
                         .targets = t.f32({rows, channels}),
                         .labels = t.numbers({rows}, 3),
                         .factor = 0.5F,
                         .losses = t.f32({rows}),
                         .loss_sum = t.zeros(DType::f64, {1})};
  ops::mean_loss(loss, stream);
  loss.label_weight = t.f32({1});
  loss.gradient = t.matrix(rows, channels);
  ops::mean_loss(loss, stream);
  loss.targets = {};
  ops::mean_loss(loss, stream);
}

struct FlatTensors {
  TensorView parameters;
  TensorView gradients;
  TensorView decision;
};

void run_updates(Tensors& t, const FlatTensors& flat, StreamView stream) {
  const Shape shape = flat.parameters.shape();
  const TensorView sums = t.zeros(DType::i64, {ops::norm_sums, ops::norm_sum_numel});
  for (const rules::Settings& settings : test::every_rule()) {
    const ops::UpdateArgs args{
        .rule = settings.index(),
        .parameters = flat.parameters,
        .gradients = flat.gradients,
        .states = {t.f32(shape), t.zeros(DType::f32, shape)},
        .scalars = t.scalars(rules::scalars(settings, {.number = 3, .learning_rate = 1e-3})),
        .sums = sums,
        .decision = flat.decision,
        .working = t.bf16(shape.numel())};
    if (rules::is_layerwise(settings)) ops::measure_update(args, stream);
    ops::update(args, stream);
  }
}

void run_flat(Tensors& t, StreamView stream) {
  constexpr std::int64_t numel = 20'000;
  const TensorView values = t.f32({numel});
  const TensorView sum = t.f32({numel});
  ops::add(values, sum, stream);
  ops::add(values, t.bf16(numel), stream);
  ops::add_squares({{sum, t.bf16(numel)}, t.zeros(DType::i64, {ExactSum::numel})}, stream);
  const TensorView decision = t.zeros(DType::f64, {ops::StepDecision::numel});
  ops::decide_step({.totals = t.zeros(DType::i64, {3, ops::step_total_numel}),
                    .labels = t.number(7),
                    .loss_scale = t.number(8),
                    .decision = decision,
                    .norm_max = 1},
                   stream);
  run_updates(t, {values, sum, decision}, stream);
  ops::add_squares({{t.vector(numel)}, t.zeros(DType::i64, {ExactSum::numel})}, stream);
  ops::round_stochastic({.source = values,
                         .target = t.bf16(numel),
                         .key = t.zeros(DType::i64, {1}),
                         .stream = 3,
                         .first = 64},
                        stream);
  ops::convert(values, t.matrix(1, numel), stream);
  ops::copy_finite({values, t.f32({numel}), t.zeros(DType::i32, {1})}, stream);
  ops::scale(t.vector(numel), 0.3F, t.vector(numel), stream);
  ops::copy_rows(t.matrix(40, 50).columns(3, 20), t.matrix(40, 20), stream);
}

}  // namespace

std::vector<TensorBytes> run_all_ops(const OpsRun& run) {
  const StreamView stream = run.stream;
  Tensors tensors(run.dtype, run.memory, stream);
  run_attention(tensors, run.head_size, {8, 40, false}, stream);
  run_attention(tensors, run.head_size, {}, stream);
  run_cached_attention(tensors, run.head_size, stream);
  run_layer_norm(tensors, stream);
  run_wide_norms(tensors, stream);
  run_residual_norm(tensors, stream);
  run_embedding(tensors, stream);
  run_mean_loss(tensors, stream);
  run_others(tensors, stream);
  if (run.products) {
    run_products(tensors, stream);
    run_classifier(tensors, stream);
  }
  run_flat(tensors, stream);
  return tensors.all();
}

}  // namespace dstrain::test
