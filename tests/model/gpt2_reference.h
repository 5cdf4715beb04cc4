#pragma once
#include <map>
#include <string>

#include "runtime/model/gpt2_config.h"
#include "tests/support/reference_ops.h"

namespace dstrain::reference {

using Parameters = std::map<std::string, Values>;

inline void add(Values& sum, const Values& values) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
}

/// Hidden states after the embedding.
inline Values gpt2_embedding(const Parameters& p,
                             const std::vector<std::int32_t>& tokens,
                             std::size_t length,
                             std::size_t channels) {
  Values hidden;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    for (std::size_t i = 0; i < channels; ++i) {
      hidden.push_back(p.at("wte.weight")[static_cast<std::size_t>(tokens[row]) * channels + i] +
                       p.at("wpe.weight")[row % length * channels + i]);
    }
  }
  return hidden;
}

/// Hidden states after block `name`, "h.0".
inline Values gpt2_block(const Parameters& p,
                         const std::string& name,
                         const Values& input,
                         const Attention& attention_of,
                         double eps) {
  const auto of = [&](const char* key) -> const Values& {
    return p.at(name + "." + key);
  };
  Values hidden = input;
  const Values qkv = linear(layer_norm(hidden, of("ln_1.weight"), of("ln_1.bias"), eps),
                            of("attn.c_attn.weight"), of("attn.c_attn.bias"));
  add(hidden, linear(packed_attention(attention_of, qkv), of("attn.c_proj.weight"),
                     of("attn.c_proj.bias")));
  Values inner = linear(layer_norm(hidden, of("ln_2.weight"), of("ln_2.bias"), eps),
                        of("mlp.c_fc.weight"), of("mlp.c_fc.bias"));
  for (double& value : inner) value = gelu(value);
  add(hidden, linear(inner, of("mlp.c_proj.weight"), of("mlp.c_proj.bias")));
  return hidden;
}

/// The sum of the losses of the counted labels.
inline double gpt2_head(const Parameters& p,
                        const Values& hidden,
                        const std::vector<std::int32_t>& labels,
                        double eps) {
  const Values& table = p.at("wte.weight");
  const Values normed = layer_norm(hidden, p.at("ln_f.weight"), p.at("ln_f.bias"), eps);
  const std::size_t channels = p.at("ln_f.weight").size();
  double sum = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] == -100) continue;
    Values logits(table.size() / channels);
    for (std::size_t i = 0; i < table.size(); ++i) {
      logits[i / channels] += table[i] * normed[row * channels + i % channels];
    }
    sum += cross_entropy(logits, labels[row]);
  }
  return sum;
}

/// The same for tokens through a whole GPT-2 without dropout.
inline double gpt2_loss(const model::Gpt2Config& config,
                        const Parameters& p,
                        const std::vector<std::int32_t>& tokens,
                        const std::vector<std::int32_t>& labels,
                        std::size_t length) {
  const auto channels = static_cast<std::size_t>(config.n_embd);
  const auto eps = static_cast<double>(config.layer_norm_epsilon);
  const auto sequences = static_cast<std::int64_t>(tokens.size() / length);
  const auto positions = static_cast<std::int64_t>(length);
  const std::int64_t head_size = config.n_embd / config.n_head;
  const Attention attention_of{
      .sizes = {sequences, positions, positions, config.n_head, config.n_head, head_size},
      .rule = {.divisor = std::sqrt(static_cast<float>(head_size))}};
  Values hidden = gpt2_embedding(p, tokens, length, channels);
  for (std::int64_t layer = 0; layer < config.n_layer; ++layer) {
    hidden = gpt2_block(p, "h." + std::to_string(layer), hidden, attention_of, eps);
  }
  return gpt2_head(p, hidden, labels, eps);
}

}  // namespace dstrain::reference
