#include "runtime/model/gpt2.h"

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/model/unit_builder.h"

namespace dstrain::model {
namespace {

std::string hidden(std::int64_t layer) {
  return fmt::format("hidden{}", layer);
}

ParameterInit normal(float stddev) {
  return {ParameterInit::Kind::normal, stddev};
}

/// Token plus position embedding.
std::unique_ptr<Unit> embedding(const Gpt2Config& c, const UnitOptions& options) {
  UnitBuilder u("embedding", "", options);
  const ParameterInit init = normal(c.initializer_range);
  const Value sum = u.embedding({"wte.weight", c.vocab_size, init},
                                UnitBuilder::Table{"wpe.weight", c.n_positions, init}, c.n_embd);
  return u.finish(u.dropout(sum, c.embd_pdrop), hidden(0));
}

/// One pre-norm transformer block.
std::unique_ptr<Unit> block(const Gpt2Config& c, std::int64_t layer, const UnitOptions& options) {
  const std::string name = fmt::format("h.{}", layer);
  UnitBuilder u(name, name + ".", options);
  const ParameterInit init = normal(c.initializer_range);
  const ParameterInit narrow =
      normal(c.initializer_range / std::sqrt(2.0F * static_cast<float>(c.n_layer)));
  const Value x = u.read(hidden(layer), c.n_embd);
  const Value n = u.norm(x, "ln_1", c.layer_norm_epsilon);
  const Value qkv = u.linear(n, "attn.c_attn", {3 * c.n_embd, init});
  const Value a = u.attention(qkv, {.heads = c.n_head, .dropout = c.attn_pdrop});
  const Value h = u.add(x, u.linear(a, "attn.c_proj", {c.n_embd, narrow}), c.resid_pdrop);
  const Value m = u.norm(h, "ln_2", c.layer_norm_epsilon);
  const Value f = u.gelu(u.linear(m, "mlp.c_fc", {c.n_inner, init}));
  const Value y = u.add(h, u.linear(f, "mlp.c_proj", {c.n_embd, narrow}), c.resid_pdrop);
  return u.finish(y, hidden(layer + 1));
}

/// Final norm, and logits by the tied wte.weight.
std::unique_ptr<Unit> head(const Gpt2Config& c, const UnitOptions& options) {
  UnitBuilder u("head", "", options);
  const Value x = u.read(hidden(c.n_layer), c.n_embd);
  return u.finish_loss(u.norm(x, "ln_f", c.layer_norm_epsilon), "wte.weight", c.vocab_size);
}

}  // namespace

Model make_gpt2(const Gpt2Config& config, const UnitOptions& options) {
  const DType dtype = options.dtype;
  DSTRAIN_CHECK(dtype == DType::f32 || is_half(dtype), "a model of {}", name_of(dtype));
  Model model;
  model.name = "gpt2";
  model.dtype = dtype;
  model.device = options.device;
  model.units.push_back(embedding(config, options));
  for (std::int64_t layer = 0; layer < config.n_layer; ++layer) {
    model.units.push_back(block(config, layer, options));
  }
  model.units.push_back(head(config, options));
  model.vocabulary = config.vocab_size;
  model.positions = config.n_positions;
  model.hidden = config.n_embd;
  model.layers = config.n_layer;
  model.attention_width = config.n_layer * config.n_embd;
  model.hf_names = config.hf_names();
  model.config_json = config.to_json(dtype);
  return model;
}

}  // namespace dstrain::model
