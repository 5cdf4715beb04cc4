#include "runtime/model/gpt2_embedding.h"

#include "runtime/model/gpt2_block_dropout.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/embedding.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {
namespace {

ops::DropoutSite site_of(const UnitCall& call, float rate) {
  return dropout_site(call.dropout, Gpt2DropoutPlace::embedding, rate);
}

}  // namespace

Gpt2Embedding::Gpt2Embedding(const Gpt2Config& config, DType dtype)
    : channels_(config.n_embd), dtype_(dtype), drop_rate_(config.embd_pdrop) {
  const ParameterInit normal{ParameterInit::Kind::normal, config.initializer_range};
  spec_.name = "embedding";
  spec_.parameters = {{"wte.weight", {config.vocab_size, config.n_embd}, normal},
                      {"wpe.weight", {config.n_positions, config.n_embd}, normal}};
  spec_.writes = {{"hidden0", config.n_embd, dtype}};
}

UnitMemory Gpt2Embedding::memory(BatchShape shape) const {
  Arena backward;
  if (drop_rate_ > 0) backward.take({shape.rows(), channels_}, dtype_);
  return {.backward_workspace = backward.used()};
}

void Gpt2Embedding::forward(const UnitCall& call, StreamView stream) const {
  const TensorView output = call.outputs[0];
  ops::embedding_forward({.tokens = call.tokens,
                          .token_table = call.parameters[0],
                          .position_table = call.parameters[1],
                          .output = output},
                         stream);
  const ops::DropoutSite site = site_of(call, drop_rate_);
  if (site.active()) {
    ops::dropout({.input = output, .residual = {}, .output = output, .site = site}, stream);
  }
}

void Gpt2Embedding::backward(const UnitCall& call, StreamView stream) const {
  TensorView gradient = call.output_gradients[0];
  const ops::DropoutSite site = site_of(call, drop_rate_);
  if (site.active()) {
    const TensorView dropped = Arena(call.workspace).take(gradient.shape(), dtype_);
    ops::dropout({.input = gradient, .residual = {}, .output = dropped, .site = site}, stream);
    gradient = dropped;
  }
  const GradientTarget& token = call.parameter_gradients[0];
  const GradientTarget& position = call.parameter_gradients[1];
  ops::embedding_backward({.tokens = call.tokens,
                           .output_gradient = gradient,
                           .token_gradient = token.values,
                           .position_gradient = position.values,
                           .accumulate_token = token.accumulate,
                           .accumulate_position = position.accumulate},
                          stream);
}

}  // namespace dstrain::model
