#include "runtime/model/llama.h"

#include <cmath>

#include "runtime/model/rope_scaling.h"
#include "runtime/model/unit_builder.h"

namespace dstrain::model {
namespace {

std::string hidden(std::int64_t layer) {
  return fmt::format("hidden{}", layer);
}

ops::Rotary block_rotary(const LlamaConfig& c) {
  return make_rotary({c.rotary_dims(), c.max_position_embeddings}, c.rope_theta, c.rope_scaling);
}

/// A block that is being recorded.
class Block {
 public:
  Block(const LlamaConfig& config, std::int64_t layer, const UnitOptions& options)
      : c_(config),
        layer_(layer),
        u_(fmt::format("layers.{}", layer), fmt::format("layers.{}.", layer), options) {}

  std::unique_ptr<Unit> record() {
    const Value x = u_.read(hidden(layer_), c_.hidden_size);
    const Value n = u_.rms_norm(x, "input_layernorm", c_.rms_norm_eps);
    const Value h = u_.add(x, attend(n), c_.resid_pdrop);
    const Value m = u_.rms_norm(h, "post_attention_layernorm", c_.rms_norm_eps);
    return u_.finish(u_.add(h, feed_forward(m), c_.resid_pdrop), hidden(layer_ + 1));
  }

 private:
  Value linear(Value input, std::string_view name, std::int64_t outputs, bool bias) {
    return u_.linear(input, name,
                     {.outputs = outputs,
                      .init = {ParameterInit::Kind::normal, c_.initializer_range},
                      .bias = bias});
  }

  /// Projections of `count` heads, with head norms if the model has them.
  struct Heads {
    std::string_view projection;
    std::string_view norm;
    std::int64_t count;
  };
  Value heads(Value input, const Heads& heads) {
    const Value all = linear(input, heads.projection, heads.count * c_.head_dim, c_.qkv_bias);
    if (!c_.head_norms || heads.norm.empty()) return all;
    return u_.rms_norm(all, heads.norm, c_.rms_norm_eps, heads.count);
  }

  [[nodiscard]] UnitBuilder::Attention attention() const {
    return {.heads = c_.num_attention_heads,
            .kv_heads = c_.num_key_value_heads,
            .head_size = c_.head_dim,
            .rule = {.window = c_.window(layer_),
                     .divisor = std::sqrt(static_cast<float>(c_.head_dim)),
                     .rotary = block_rotary(c_)},
            .dropout = c_.attention_dropout};
  }

  Value attend(Value input) {
    return linear(attention(input), "self_attn.o_proj", c_.hidden_size, c_.output_bias);
  }

  Value attention(Value input) {
    const std::int64_t kv_heads = c_.num_key_value_heads;
    if (c_.packed_projections) {
      const std::int64_t all_heads = c_.num_attention_heads + 2 * kv_heads;
      return u_.attention(heads(input, {"self_attn.qkv_proj", "", all_heads}), attention());
    }
    const Value q = heads(input, {"self_attn.q_proj", "self_attn.q_norm", c_.num_attention_heads});
    const Value k = heads(input, {"self_attn.k_proj", "self_attn.k_norm", kv_heads});
    const Value v = heads(input, {"self_attn.v_proj", "", kv_heads});
    return u_.attention({q, k, v}, attention());
  }

  Value feed_forward(Value input) {
    return linear(gated(input), "mlp.down_proj", c_.hidden_size, c_.mlp_bias);
  }

  Value gated(Value input) {
    const std::int64_t width = c_.intermediate_size;
    if (c_.packed_projections) {
      return u_.gated(linear(input, "mlp.gate_up_proj", 2 * width, c_.mlp_bias), c_.hidden_act);
    }
    const Value gate = linear(input, "mlp.gate_proj", width, c_.mlp_bias);
    const Value up = linear(input, "mlp.up_proj", width, c_.mlp_bias);
    return u_.gated(gate, up, c_.hidden_act);
  }

  const LlamaConfig& c_;
  std::int64_t layer_;
  UnitBuilder u_;
};

constexpr std::string_view token_table = "embed_tokens.weight";

std::unique_ptr<Unit> embedding(const LlamaConfig& c, const UnitOptions& options) {
  UnitBuilder u("embedding", "", options);
  const ParameterInit init{ParameterInit::Kind::normal, c.initializer_range};
  const ParameterRef table = u.own(token_table, {c.vocab_size, c.hidden_size}, init);
  const Value rows = u.embedding({table}, c.hidden_size);
  return u.finish(rows, hidden(0));
}

std::unique_ptr<Unit> head(const LlamaConfig& c, const UnitOptions& options) {
  UnitBuilder u("head", "", options);
  const Value x = u.read(hidden(c.num_hidden_layers), c.hidden_size);
  const Value n = u.rms_norm(x, "norm", c.rms_norm_eps);
  const ParameterInit init{ParameterInit::Kind::normal, c.initializer_range};
  const ParameterRef weight = c.tie_word_embeddings
                                  ? u.borrow(std::string(token_table))
                                  : u.own(hf_head, {c.vocab_size, c.hidden_size}, init);
  u.cross_entropy(n, weight, c.vocab_size);
  return u.finish_loss();
}

}  // namespace

Model make_llama(const LlamaConfig& config, const UnitOptions& options) {
  Model model = describe_model(config, options);
  model.units.push_back(embedding(config, options));
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    model.units.push_back(Block(config, layer, options).record());
  }
  model.units.push_back(head(config, options));
  model.positions = config.max_position_embeddings;
  model.short_context = block_rotary(config).short_positions;
  model.layers = config.num_hidden_layers;
  model.outputs_first = true;
  const std::int64_t width = config.num_attention_heads * config.head_dim;
  model.attention = {{.width = config.num_hidden_layers * width, .causal = true}};
  return model;
}

}  // namespace dstrain::model
