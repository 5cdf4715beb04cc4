#pragma once
#include <cstdint>

#include "runtime/model/model_config.h"
#include "runtime/model/model_family.h"
#include "runtime/ops/activation.h"

namespace dstrain::model {

const ModelFamily& t5_family();

/// The activation between the linear layers of an MLP: the values of feed_forward_proj.
enum class T5FeedForward : std::int8_t {
  relu,
  gelu,
  gelu_new,
  silu,
  gated_relu,
  gated_gelu,  ///< with GPT-2's gelu_new, as in the training of T5 1.1
  gated_silu,
};

struct T5Mlp {
  ops::Activation activation;
  bool gated;
};
T5Mlp mlp_of(T5FeedForward kind);

/// The sizes and rates of a T5, including version 1.1 and T0, with the names of Hugging Face's
/// config.json.
struct T5Config final : ModelConfig {
  T5Config() : ModelConfig(t5_family()) {}

  using ModelConfig::make;
  [[nodiscard]] Model make(const UnitOptions& options) const override;
  [[nodiscard]] std::int64_t vocabulary() const override { return vocab_size; }
  [[nodiscard]] std::int64_t hidden() const override { return d_model; }
  [[nodiscard]] HeadSize head_size() const override { return {"d_kv", d_kv}; }
  [[nodiscard]] HfNames hf_names() const override;
  [[nodiscard]] Parts parts() const override;
  void settle(const StoredTensor& stored) override;

  std::int64_t vocab_size = 32128;
  std::int64_t d_model = 512;
  std::int64_t d_kv = 64;  ///< per head
  std::int64_t d_ff = 2048;
  std::int64_t num_layers = 6;
  std::int64_t num_decoder_layers = 6;  ///< default: num_layers
  std::int64_t num_heads = 8;
  std::int64_t relative_attention_num_buckets = 32;
  std::int64_t relative_attention_max_distance = 128;
  float dropout_rate = 0;
  float layer_norm_epsilon = 1e-6F;
  float initializer_factor = 1;
  T5FeedForward feed_forward_proj = T5FeedForward::relu;
  bool tie_word_embeddings = true;
  bool scale_decoder_outputs = true;  ///< a tied head divides its inputs by sqrt(d_model)
  std::int64_t pad_token_id = 0;
  std::int64_t decoder_start_token_id = 0;

 protected:
  void read_more(const nlohmann::json& document, const std::string& path) override;
  void write_more(nlohmann::ordered_json& document) const override;
  void check_more(std::vector<std::string>& problems) const override;
};

}  // namespace dstrain::model
