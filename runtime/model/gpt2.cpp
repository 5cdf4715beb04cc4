#include "runtime/model/gpt2.h"

#include <cmath>

#include "runtime/model/unit_builder.h"

namespace dstrain::model {
namespace {

std::string hidden(std::int64_t layer) {
  return fmt::format("hidden{}", layer);
}

ParameterInit normal(float stddev) {
  return {ParameterInit::Kind::normal, stddev};
}

/// Makes the sum of token and position embedding.
std::unique_ptr<Unit> embedding(const Gpt2Config& c, const UnitOptions& options) {
  UnitBuilder u("embedding", "", options);
  const ParameterInit init = normal(c.initializer_range);
  const Value sum = u.embedding({.tokens = u.own("wte.weight", {c.vocab_size, c.n_embd}, init),
                                 .positions = u.own("wpe.weight", {c.n_positions, c.n_embd}, init)},
                                c.n_embd);
  return u.finish(u.dropout(sum, c.embd_pdrop), hidden(0));
}

float score_divisor(const Gpt2Config& c, std::int64_t layer) {
  const std::int64_t head_size = c.n_embd / c.n_head;
  const float by_size = c.scale_attn_weights ? std::sqrt(static_cast<float>(head_size)) : 1.0F;
  return c.scale_attn_by_inverse_layer_idx ? by_size * static_cast<float>(layer + 1) : by_size;
}

/// Makes one pre-norm transformer block.
std::unique_ptr<Unit> block(const Gpt2Config& c, std::int64_t layer, const UnitOptions& options) {
  const std::string name = fmt::format("h.{}", layer);
  UnitBuilder u(name, name + ".", options);
  const ParameterInit wide = normal(c.initializer_range);
  const ParameterInit narrow =
      normal(c.initializer_range / std::sqrt(2.0F * static_cast<float>(c.n_layer)));
  const auto linear = [&u](Value v, std::string_view part, std::int64_t n, ParameterInit init) {
    return u.linear(v, part, {n, init, WeightLayout::inputs_first, true});
  };
  const Value x = u.read(hidden(layer), c.n_embd);
  const Value n = u.layer_norm(x, "ln_1", c.layer_norm_epsilon);
  const Value qkv = linear(n, "attn.c_attn", 3 * c.n_embd, wide);
  const Value a = u.attention(qkv, {.heads = c.n_head,
                                    .kv_heads = c.n_head,
                                    .head_size = c.n_embd / c.n_head,
                                    .rule = {.divisor = score_divisor(c, layer)},
                                    .dropout = c.attn_pdrop});
  const Value h = u.add(x, linear(a, "attn.c_proj", c.n_embd, narrow), c.resid_pdrop);
  const Value m = u.layer_norm(h, "ln_2", c.layer_norm_epsilon);
  const Value f = u.activation(linear(m, "mlp.c_fc", c.n_inner, wide), c.activation_function);
  const Value y = u.add(h, linear(f, "mlp.c_proj", c.n_embd, narrow), c.resid_pdrop);
  return u.finish(y, hidden(layer + 1));
}

/// Makes the final norm, and the logits by wte.weight or, untied, by its own weight.
std::unique_ptr<Unit> head(const Gpt2Config& c, const UnitOptions& options) {
  UnitBuilder u("head", "", options);
  const Value x = u.read(hidden(c.n_layer), c.n_embd);
  const Value n = u.layer_norm(x, "ln_f", c.layer_norm_epsilon);
  const ParameterRef weight =
      c.tie_word_embeddings ? u.borrow("wte.weight")
                            : u.own(hf_head, {c.vocab_size, c.n_embd}, normal(c.initializer_range));
  u.cross_entropy(n, weight, c.vocab_size);
  return u.finish_loss();
}

}  // namespace

Model make_gpt2(const Gpt2Config& config, const UnitOptions& options) {
  Model model = describe_model(config, options);
  model.units.push_back(embedding(config, options));
  for (std::int64_t layer = 0; layer < config.n_layer; ++layer) {
    model.units.push_back(block(config, layer, options));
  }
  model.units.push_back(head(config, options));
  model.positions = config.n_positions;
  model.layers = config.n_layer;
  model.attention = {{.width = config.n_layer * config.n_embd, .causal = true}};
  return model;
}

}  // namespace dstrain::model
