#pragma once
#include <cstdint>

#include "runtime/model/model_config.h"
#include "runtime/model/model_family.h"
#include "runtime/model/rope_scaling.h"
#include "runtime/ops/activation.h"

namespace dstrain::model {

// Families whose models are LlamaConfigs and differ only by their keys and defaults.
const ModelFamily& llama_family();
const ModelFamily& mistral_family();
const ModelFamily& qwen2_family();
const ModelFamily& qwen3_family();
const ModelFamily& phi3_family();  ///< also for Phi-4 and Phi-4-mini

/// The sizes and rates of a Llama (Touvron et al. 2023) and its variants, with the names of Hugging
/// Face's config.json if it has them: RMS norms before attention and MLP, rotary positions, groups
/// of heads that share keys and values, a gated MLP.
struct LlamaConfig final : ModelConfig {
  explicit LlamaConfig(const ModelFamily& family = llama_family()) : ModelConfig(family) {}

  using ModelConfig::make;
  [[nodiscard]] Model make(const UnitOptions& options) const override;
  [[nodiscard]] std::int64_t vocabulary() const override { return vocab_size; }
  [[nodiscard]] std::int64_t hidden() const override { return hidden_size; }
  [[nodiscard]] HeadSize head_size() const override { return {"head_dim", head_dim}; }
  [[nodiscard]] HfNames hf_names() const override;
  [[nodiscard]] Parts parts() const override;
  /// The number of latest tokens, including itself, that a token of this layer attends to; 0: all.
  [[nodiscard]] std::int64_t window(std::int64_t layer) const;
  /// The number of features of a head, from the first on, that are rotated.
  [[nodiscard]] std::int64_t rotary_dims() const;

  std::int64_t vocab_size = 32000;
  std::int64_t hidden_size = 4096;
  std::int64_t intermediate_size = 11008;
  std::int64_t num_hidden_layers = 32;
  std::int64_t num_attention_heads = 32;
  std::int64_t num_key_value_heads = 32;  ///< default: num_attention_heads
  std::int64_t head_dim = 128;            ///< default: hidden_size / num_attention_heads
  ops::Activation hidden_act = ops::Activation::silu;  ///< of the gate of the MLP
  std::int64_t max_position_embeddings = 2048;
  float initializer_range = 0.02F;
  float rms_norm_eps = 1e-6F;
  bool tie_word_embeddings = false;
  float rope_theta = 10000;
  RopeScaling rope_scaling{};
  float partial_rotary_factor = 1;  ///< fraction of a head that is rotated
  float attention_dropout = 0;      ///< of the attention probabilities
  float embd_pdrop = 0;   ///< Phi-3 has it; transformers reads and never applies it, as we do
  float resid_pdrop = 0;  ///< of each branch before it is added to the residual stream
  /// Queries, keys and values are one projection; gate and up projection are another.
  bool packed_projections = false;
  bool qkv_bias = false;               ///< of the projections to queries, keys and values
  bool output_bias = false;            ///< of the attention's output projection
  bool mlp_bias = false;               ///< of all three projections of the MLP
  bool head_norms = false;             ///< RMS norms of queries and keys, over each head
  std::int64_t sliding_window = 0;     ///< 0: none
  bool use_sliding_window = true;      ///< false: none, whatever sliding_window says
  std::int64_t max_window_layers = 0;  ///< the first layer with a window

 protected:
  void read_more(const nlohmann::json& document, const std::string& path) override;
  void write_more(nlohmann::ordered_json& document) const override;
  void check_more(std::vector<std::string>& problems) const override;

 private:
  void check_rotation(std::vector<std::string>& problems) const;
};

}  // namespace dstrain::model
