#pragma once
#include <cstdint>

#include "runtime/model/model_config.h"
#include "runtime/model/model_family.h"
#include "runtime/ops/activation.h"

namespace dstrain::model {

const ModelFamily& gpt2_family();

/// The sizes and rates of a GPT-2 (Radford et al. 2019), with the names of Hugging Face's
/// config.json.
struct Gpt2Config final : ModelConfig {
  Gpt2Config() : ModelConfig(gpt2_family()) {}

  using ModelConfig::make;
  [[nodiscard]] Model make(const UnitOptions& options) const override;
  [[nodiscard]] std::int64_t vocabulary() const override { return vocab_size; }
  [[nodiscard]] std::int64_t hidden() const override { return n_embd; }
  [[nodiscard]] HeadSize head_size() const override { return {"n_embd / n_head", n_embd / n_head}; }
  [[nodiscard]] HfNames hf_names() const override;
  [[nodiscard]] Parts parts() const override;

  std::int64_t vocab_size = 50257;
  std::int64_t n_positions = 1024;
  std::int64_t n_embd = 768;
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
  std::int64_t n_inner = 3072;  ///< default: 4 n_embd
  float layer_norm_epsilon = 1e-5F;
  float initializer_range = 0.02F;
  float embd_pdrop = 0;   ///< dropout rate of the embedding sum,
  float attn_pdrop = 0;   ///< of the attention probabilities
  float resid_pdrop = 0;  ///< and of each branch before it is added to the residual stream
  ops::Activation activation_function = ops::Activation::gelu_tanh;
  bool tie_word_embeddings = true;
  bool scale_attn_weights = true;                ///< divide scores by sqrt(D)
  bool scale_attn_by_inverse_layer_idx = false;  ///< and by the number of the layer, from 1

 protected:
  void check_more(std::vector<std::string>& problems) const override;
};

}  // namespace dstrain::model
