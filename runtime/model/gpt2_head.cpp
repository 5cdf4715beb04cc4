#include "runtime/model/gpt2_head.h"

#include <algorithm>

#include "runtime/ops/classifier.h"
#include "runtime/ops/layer_norm.h"

namespace dstrain::model {
namespace {

enum Parameter : std::size_t { ln_f_weight, ln_f_bias, wte_weight };

/// Enough that reading, and in bf16 packing, all of wte.weight per chunk costs little.
constexpr std::int64_t chunk_rows_max = 1024;

/// Rows [begin, begin + rows) of a dense (B, T, C) activation.
TensorView rows_from(const TensorView& view, std::int64_t begin, std::int64_t rows) {
  const Shape& shape = view.shape();
  return view.reshaped({shape[0] * shape[1], shape[2]}).rows(begin, rows);
}

}  // namespace

/// What R rows need, cut from the workspace.
struct Gpt2Head::Chunk {
  TensorView normed;     ///< (R, C); in backward its gradient follows
  TensorView mean;       ///< (R) f32
  TensorView rstd;       ///< (R) f32
  TensorView workspace;  ///< of the classifier
  [[nodiscard]] std::int64_t rows() const { return mean.numel(); }
};

Gpt2Head::Gpt2Head(const Gpt2Config& config, const UnitOptions& options)
    : vocabulary_(config.vocab_size),
      channels_(config.n_embd),
      options_(options),
      eps_(config.layer_norm_epsilon) {
  spec_.name = "head";
  spec_.parameters = {{"ln_f.weight", {channels_}, {ParameterInit::Kind::ones}},
                      {"ln_f.bias", {channels_}, {ParameterInit::Kind::zeros}}};
  spec_.borrowed = {"wte.weight"};
  spec_.reads = {fmt::format("hidden{}", config.n_layer)};
  spec_.computes_loss = true;
}

std::int64_t Gpt2Head::chunk_rows(std::int64_t rows) {
  const std::int64_t chunks = (rows + chunk_rows_max - 1) / chunk_rows_max;
  return (rows + chunks - 1) / chunks;
}

Gpt2Head::Chunk Gpt2Head::cut_chunk(Arena& arena, std::int64_t rows) const {
  const ops::ClassifierSizes sizes{rows, channels_, vocabulary_, options_.dtype};
  return {.normed = arena.take({rows, channels_}, options_.dtype),
          .mean = arena.take({rows}),
          .rstd = arena.take({rows}),
          .workspace = arena.take({ops::classifier_workspace(sizes, options_.device)}, DType::u8)};
}

UnitMemory Gpt2Head::memory(BatchShape shape) const {
  const std::int64_t most = chunk_rows(shape.rows());
  Bytes bytes = 0;
  for (const std::int64_t rows : {shape.rows(), shape.sequences}) {
    for (const std::int64_t chunk : {std::min(most, rows), (rows - 1) % most + 1}) {
      Arena arena;  // products of fewer rows may need more
      cut_chunk(arena, chunk);
      bytes = std::max(bytes, arena.used());
    }
  }
  return {.forward_workspace = bytes, .backward_workspace = bytes};
}

template <class Body>
void Gpt2Head::for_chunks(const UnitCall& call, std::int64_t rows, const Body& body) const {
  const std::int64_t most = chunk_rows(call.shape.rows());
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    Arena arena(call.workspace);
    body(cut_chunk(arena, std::min(most, rows - begin)), begin);
  }
}

void Gpt2Head::normalize(const UnitCall& call,
                         const TensorView& rows,
                         const Chunk& chunk,
                         std::int64_t begin,
                         StreamView stream) const {
  const std::int64_t count = rows.shape()[0];
  ops::layer_norm_forward({.input = rows,
                           .weight = call.parameters[ln_f_weight],
                           .bias = call.parameters[ln_f_bias],
                           .mean = chunk.mean.part(begin, {count}),
                           .rstd = chunk.rstd.part(begin, {count}),
                           .output = chunk.normed.rows(begin, count),
                           .eps = eps_},
                          stream);
}

void Gpt2Head::last_logits(const UnitCall& call, StreamView stream) const {
  for_chunks(call, call.shape.sequences, [&](const Chunk& chunk, std::int64_t begin) {
    for (std::int64_t i = 0; i < chunk.rows(); ++i) {
      const std::int64_t row = (begin + i + 1) * call.shape.tokens - 1;
      normalize(call, rows_from(call.inputs[0], row, 1), chunk, i, stream);
    }
    ops::classifier_logits({.input = chunk.normed,
                            .weight = call.parameters[wte_weight],
                            .logits = call.logits.rows(begin, chunk.rows()),
                            .workspace = chunk.workspace},
                           stream);
  });
}

void Gpt2Head::forward(const UnitCall& call, StreamView stream) const {
  if (!call.logits.empty()) {
    last_logits(call, stream);
    return;
  }
  for_chunks(call, call.shape.rows(), [&](const Chunk& chunk, std::int64_t begin) {
    normalize(call, rows_from(call.inputs[0], begin, chunk.rows()), chunk, 0, stream);
    ops::classifier_loss({.input = chunk.normed,
                          .weight = call.parameters[wte_weight],
                          .labels = call.labels.part(begin, {chunk.rows()}),
                          .loss_sum = call.loss,
                          .workspace = chunk.workspace},
                         stream);
  });
}

void Gpt2Head::backward(const UnitCall& call, StreamView stream) const {
  const GradientTarget& wte = call.parameter_gradients[wte_weight];
  const GradientTarget& weight = call.parameter_gradients[ln_f_weight];
  const GradientTarget& bias = call.parameter_gradients[ln_f_bias];
  const GradientTarget& input = call.input_gradients[0];
  for_chunks(call, call.shape.rows(), [&](const Chunk& chunk, std::int64_t begin) {
    const TensorView hidden = rows_from(call.inputs[0], begin, chunk.rows());
    const bool later = begin > 0;
    normalize(call, hidden, chunk, 0, stream);
    ops::classifier_loss({.input = chunk.normed,
                          .weight = call.parameters[wte_weight],
                          .labels = call.labels.part(begin, {chunk.rows()}),
                          .loss_sum = call.loss,
                          .label_weight = call.label_weight,
                          .input_gradient = chunk.normed,
                          .weight_gradient = wte.values,
                          .accumulate_weight = wte.accumulate || later,
                          .workspace = chunk.workspace},
                         stream);
    ops::layer_norm_backward({.input = hidden,
                              .weight = call.parameters[ln_f_weight],
                              .mean = chunk.mean,
                              .rstd = chunk.rstd,
                              .output_gradient = chunk.normed,
                              .residual = {},
                              .input_gradient = rows_from(input.values, begin, chunk.rows()),
                              .weight_gradient = weight.values,
                              .bias_gradient = bias.values,
                              .accumulate_input = input.accumulate,
                              .accumulate_weight = weight.accumulate || later,
                              .accumulate_bias = bias.accumulate || later},
                             stream);
  });
}

}  // namespace dstrain::model
