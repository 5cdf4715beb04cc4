#include "runtime/model/gpt2_head.h"

#include <algorithm>

#include "runtime/ops/copy_rows.h"
#include "runtime/ops/cross_entropy.h"
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

/// (R, V) dense rows from pieces of columns.
void join_pieces(const ops::LogitPieces& logits, const TensorView& rows, StreamView stream) {
  for (std::int64_t piece = 0; piece < logits.count(); ++piece) {
    ops::copy_rows(logits.piece(piece),
                   rows.columns(logits.first_column(piece), logits.width(piece)), stream);
  }
}

}  // namespace

struct Gpt2Head::Chunk {
  Gpt2HeadSpace space;
  TensorView hidden;  ///< (R, C) rows of the input
  TensorView labels;  ///< (R)
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

Gpt2HeadSpace Gpt2Head::cut_space(Arena& arena, std::int64_t rows) const {
  return {arena, {rows, channels_, vocabulary_, options_}};
}

UnitMemory Gpt2Head::memory(BatchShape shape) const {
  const std::int64_t rows = chunk_rows(shape.rows());
  const std::int64_t last = (shape.rows() - 1) % rows + 1;
  Bytes most = 0;
  for (const std::int64_t chunk : {rows, last}) {  // products of fewer rows may need more
    Arena arena;
    cut_space(arena, chunk);
    most = std::max(most, arena.used());
  }
  return {.forward_workspace = most, .backward_workspace = most};
}

Gpt2Head::Chunk Gpt2Head::cut_chunk(const UnitCall& call, std::int64_t begin) const {
  const std::int64_t rows = std::min(chunk_rows(call.shape.rows()), call.shape.rows() - begin);
  Arena arena(call.workspace);
  return {cut_space(arena, rows), rows_from(call.inputs[0], begin, rows),
          call.labels.part(begin, {rows})};
}

void Gpt2Head::compute_loss(const UnitCall& call,
                            const Chunk& chunk,
                            TensorView label_weight,
                            StreamView stream) const {
  ops::layer_norm_forward({.input = chunk.hidden,
                           .weight = call.parameters[ln_f_weight],
                           .bias = call.parameters[ln_f_bias],
                           .mean = chunk.space.mean,
                           .rstd = chunk.space.rstd,
                           .output = chunk.space.normed,
                           .eps = eps_},
                          stream);
  head_logits(chunk.space, call.parameters[wte_weight], stream);
  ops::cross_entropy({.logits = chunk.space.logits,
                      .labels = chunk.labels,
                      .losses = chunk.space.losses,
                      .loss_sum = call.loss,
                      .label_weight = label_weight,
                      .softmax = chunk.space.softmax},
                     stream);
}

void Gpt2Head::last_logits(const UnitCall& call, StreamView stream) const {
  const std::int64_t most = chunk_rows(call.shape.rows());
  for (std::int64_t begin = 0; begin < call.shape.sequences; begin += most) {
    const std::int64_t count = std::min(most, call.shape.sequences - begin);
    Arena arena(call.workspace);
    const Gpt2HeadSpace space = cut_space(arena, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = (begin + i + 1) * call.shape.tokens - 1;
      ops::layer_norm_forward({.input = rows_from(call.inputs[0], row, 1),
                               .weight = call.parameters[ln_f_weight],
                               .bias = call.parameters[ln_f_bias],
                               .mean = space.mean.part(0, {1}),
                               .rstd = space.rstd.part(0, {1}),
                               .output = space.normed.rows(i, 1),
                               .eps = eps_},
                              stream);
    }
    head_logits(space, call.parameters[wte_weight], stream);
    join_pieces(space.logits, call.logits.rows(begin, count), stream);
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
    compute_loss(call, chunk, {}, stream);
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
    compute_loss(call, chunk, call.label_weight, stream);
    head_gradients(chunk.space, call.parameters[wte_weight], {wte.values, wte.accumulate || later},
                   stream);
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
