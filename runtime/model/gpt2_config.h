#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/dtype.h"

namespace dstrain::model {

/// The sizes and rates of a GPT-2 (Radford et al. 2019), under the names of Hugging Face's
/// config.json. Activation: GELU in its tanh form; the head is tied to the token embedding.
struct Gpt2Config {
  std::int64_t vocab_size = 50257;
  std::int64_t n_positions = 1024;
  std::int64_t n_embd = 768;
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
  std::int64_t n_inner = 3072;  ///< 4 n_embd unless given
  float layer_norm_epsilon = 1e-5F;
  float initializer_range = 0.02F;
  float embd_pdrop = 0;   ///< dropout rates: of the embedding sum,
  float attn_pdrop = 0;   ///< of the attention probabilities
  float resid_pdrop = 0;  ///< and of each branch before it joins the residual stream
  /// Trained on the bytes of text although the vocabulary is larger: "dstrain_tokenizer": "byte".
  bool byte_tokens = false;
  /// The config.json that these were read from: what training does not change of it is written
  /// again. Empty: there was none.
  std::string source{};
};

/// "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"; the presets have no dropout. Throws
/// Error{usage} that lists the presets, or says that a llama preset is not implemented.
Gpt2Config gpt2_preset(std::string_view name);

/// Reads the text of a config.json (`path` is for messages). A key that is absent has Hugging
/// Face's default: dropout 0.1. Unknown keys are kept for to_json() and else ignored, as there are
/// many that do not matter, and as transformers ignores n_ctx; a model_type, activation or option
/// that would change the numbers and is not built is an error. Throws Error{input} naming the file
/// and the key.
Gpt2Config parse_gpt2_config(const std::string& text, const std::string& path);

/// The configuration that --config_name means: a preset's name, a config.json, or a directory that
/// holds one. Throws Error{usage} or Error{input}.
Gpt2Config load_gpt2_config(const std::string& name_or_path);

/// Applies "n_layer=2,n_embd=64". While n_inner is four times n_embd it follows n_embd. Throws
/// Error{usage} naming the bad item.
void apply_overrides(Gpt2Config& config, std::string_view overrides);

/// Throws Error{usage} naming a size or rate that is out of range, or when n_embd is no multiple
/// of n_head.
void check(const Gpt2Config& config);

/// A size or rate by which two configurations are other functions of their parameters.
struct ConfigDifference {
  std::string_view key;
  std::string before;
  std::string after;
};
std::vector<ConfigDifference> differences(const Gpt2Config& before, const Gpt2Config& after);

/// The config.json of a Hugging Face GPT2LMHeadModel with these sizes, whose weights have `dtype`
/// (f32, bf16 or f16): `source`, in its order, with what is another here, or one of its own. Ids of
/// special tokens that a smaller vocabulary no longer holds become null.
std::string to_json(const Gpt2Config& config, DType dtype = DType::f32);

}  // namespace dstrain::model
