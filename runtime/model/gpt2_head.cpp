#include "runtime/model/gpt2_head.h"

#include <algorithm>

#include "runtime/ops/cross_entropy.h"
#include "runtime/ops/layer_norm.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {
namespace {

enum Parameter : std::size_t { ln_f_weight, ln_f_bias, wte_weight };

constexpr std::int64_t chunk_rows_min = 256;
constexpr std::int64_t chunk_logits_numel = std::int64_t{1} << 22;

/// What a chunk of rows needs, cut from the workspace.
struct HeadSpace {
  TensorView normed;  ///< (R, C); in backward its gradient follows
  TensorView logits;  ///< (R, V); in backward their gradient follows
  TensorView mean;    ///< (R)
  TensorView rstd;    ///< (R)
  TensorView losses;  ///< (R)
  std::span<std::byte> products;
};

ops::MatmulArgs logits_product(const TensorView& normed,
                               const TensorView& wte,
                               const TensorView& logits) {
  return {.a = normed, .b = wte, .out = logits, .bias = {}, .b_transposed = true, .workspace = {}};
}

ops::MatmulArgs wte_product(const HeadSpace& space, const GradientTarget& wte, bool accumulate) {
  return {.a = space.logits,
          .b = space.normed,
          .out = wte.values,
          .bias = {},
          .a_transposed = true,
          .accumulate = accumulate,
          .workspace = {}};
}

ops::MatmulArgs normed_product(const HeadSpace& space, const TensorView& wte) {
  return {.a = space.logits, .b = wte, .out = space.normed, .bias = {}, .workspace = {}};
}

Bytes products_workspace(const HeadSpace& space) {
  const TensorView wte(nullptr, DType::f32, {space.logits.shape()[1], space.normed.shape()[1]});
  return std::max({ops::matmul_workspace(logits_product(space.normed, wte, space.logits)),
                   ops::matmul_workspace(wte_product(space, {wte, true}, true)),
                   ops::matmul_workspace(normed_product(space, wte))});
}

HeadSpace cut_space(Arena& arena,
                    std::int64_t rows,
                    std::int64_t channels,
                    std::int64_t vocabulary) {
  HeadSpace space{arena.take({rows, channels}), arena.take({rows, vocabulary}),
                  arena.take({rows}),           arena.take({rows}),
                  arena.take({rows}),           {}};
  const Bytes bytes = products_workspace(space);
  const TensorView products = arena.take({bytes}, DType::u8);
  if (!products.empty()) space.products = {products.data(), static_cast<std::size_t>(bytes)};
  return space;
}

/// Rows [begin, begin + rows) of a dense (B, T, C) activation.
TensorView rows_from(const TensorView& view, std::int64_t begin, std::int64_t rows) {
  const std::int64_t columns = view.shape()[2];
  return {view.data() + begin * columns * size_of(view.dtype()),
          view.dtype(),
          {rows, columns},
          view.device()};
}

void multiply(const UnitCall& call,
              ops::MatmulArgs product,
              const HeadSpace& space,
              StreamView stream) {
  product.workspace = space.products;
  call.matmuls->run(product, stream);
}

}  // namespace

struct Gpt2Head::Chunk {
  HeadSpace space;
  TensorView hidden;                     ///< (R, C) rows of the input
  std::span<const std::int32_t> labels;  ///< (R)
};

Gpt2Head::Gpt2Head(const Gpt2Config& config)
    : vocabulary_(config.vocab_size), channels_(config.n_embd), eps_(config.layer_norm_epsilon) {
  spec_.name = "head";
  spec_.parameters = {{"ln_f.weight", {channels_}, {ParameterInit::Kind::ones}},
                      {"ln_f.bias", {channels_}, {ParameterInit::Kind::zeros}}};
  spec_.borrowed = {"wte.weight"};
  spec_.reads = {fmt::format("hidden{}", config.n_layer)};
  spec_.computes_loss = true;
}

std::int64_t Gpt2Head::chunk_rows(std::int64_t rows) const {
  return std::min(rows, std::max(chunk_rows_min, chunk_logits_numel / vocabulary_));
}

UnitMemory Gpt2Head::memory(BatchShape shape) const {
  Arena arena;
  cut_space(arena, chunk_rows(shape.rows()), channels_, vocabulary_);
  return {.forward_workspace = arena.used(), .backward_workspace = arena.used()};
}

Gpt2Head::Chunk Gpt2Head::cut_chunk(const UnitCall& call, std::int64_t begin) const {
  const std::int64_t rows = std::min(chunk_rows(call.shape.rows()), call.shape.rows() - begin);
  Arena arena(call.workspace);
  return {cut_space(arena, rows, channels_, vocabulary_), rows_from(call.inputs[0], begin, rows),
          call.labels.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows))};
}

void Gpt2Head::compute_logits(const UnitCall& call, const Chunk& chunk, StreamView stream) const {
  ops::layer_norm_forward({.input = chunk.hidden,
                           .weight = call.parameters[ln_f_weight],
                           .bias = call.parameters[ln_f_bias],
                           .mean = chunk.space.mean,
                           .rstd = chunk.space.rstd,
                           .output = chunk.space.normed,
                           .eps = eps_},
                          stream);
  multiply(call,
           logits_product(chunk.space.normed, call.parameters[wte_weight], chunk.space.logits),
           chunk.space, stream);
}

void Gpt2Head::last_logits(const UnitCall& call, StreamView stream) const {
  const std::int64_t most = chunk_rows(call.shape.rows());
  for (std::int64_t begin = 0; begin < call.shape.sequences; begin += most) {
    const std::int64_t count = std::min(most, call.shape.sequences - begin);
    Arena arena(call.workspace);
    const HeadSpace space = cut_space(arena, count, channels_, vocabulary_);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = (begin + i + 1) * call.shape.tokens - 1;
      const TensorView one = rows_from(space.normed.reshaped({1, count, channels_}), i, 1);
      ops::layer_norm_forward({.input = rows_from(call.inputs[0], row, 1),
                               .weight = call.parameters[ln_f_weight],
                               .bias = call.parameters[ln_f_bias],
                               .mean = {space.mean.data(), DType::f32, {1}},
                               .rstd = {space.rstd.data(), DType::f32, {1}},
                               .output = one,
                               .eps = eps_},
                              stream);
    }
    multiply(call,
             logits_product(space.normed, call.parameters[wte_weight],
                            rows_from(call.logits.reshaped({1, call.shape.sequences, vocabulary_}),
                                      begin, count)),
             space, stream);
  }
}

void Gpt2Head::forward(const UnitCall& call, StreamView stream) const {
  if (!call.logits.empty()) {
    last_logits(call, stream);
    return;
  }
  const std::int64_t step = chunk_rows(call.shape.rows());
  for (std::int64_t begin = 0; begin < call.shape.rows(); begin += step) {
    const Chunk chunk = cut_chunk(call, begin);
    compute_logits(call, chunk, stream);
    ops::cross_entropy_forward({.logits = chunk.space.logits,
                                .labels = chunk.labels,
                                .losses = chunk.space.losses,
                                .loss_sum = &call.loss->sum,
                                .label_count = &call.loss->labels},
                               stream);
  }
}

void Gpt2Head::backward(const UnitCall& call, StreamView stream) const {
  const GradientTarget& wte = call.parameter_gradients[wte_weight];
  const GradientTarget& weight = call.parameter_gradients[ln_f_weight];
  const GradientTarget& bias = call.parameter_gradients[ln_f_bias];
  const GradientTarget& input = call.input_gradients[0];
  const std::int64_t step = chunk_rows(call.shape.rows());
  for (std::int64_t begin = 0; begin < call.shape.rows(); begin += step) {
    const Chunk chunk = cut_chunk(call, begin);
    const bool later = begin > 0;
    compute_logits(call, chunk, stream);
    ops::cross_entropy_backward({.logits = chunk.space.logits,
                                 .labels = chunk.labels,
                                 .losses = chunk.space.losses,
                                 .label_weight = call.label_weight,
                                 .loss_sum = &call.loss->sum,
                                 .label_count = &call.loss->labels},
                                stream);
    multiply(call, wte_product(chunk.space, wte, wte.accumulate || later), chunk.space, stream);
    multiply(call, normed_product(chunk.space, call.parameters[wte_weight]), chunk.space, stream);
    ops::layer_norm_backward(
        {.input = chunk.hidden,
         .weight = call.parameters[ln_f_weight],
         .mean = chunk.space.mean,
         .rstd = chunk.space.rstd,
         .output_gradient = chunk.space.normed,
         .residual = {},
         .input_gradient = rows_from(input.values, begin, chunk.hidden.shape()[0]),
         .weight_gradient = weight.values,
         .bias_gradient = bias.values,
         .accumulate_input = input.accumulate,
         .accumulate_weight = weight.accumulate || later,
         .accumulate_bias = bias.accumulate || later},
        stream);
  }
}

}  // namespace dstrain::model
