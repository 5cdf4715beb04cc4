#include "runtime/model/t5_config.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/model/hf_activations.h"
#include "runtime/model/t5.h"

namespace dstrain::model {
namespace {

using T = T5Config;

ConfigValue layers_of(const ModelConfig& config) {
  return static_cast<const T&>(config).num_layers;
}

ConfigValue scales(const ModelConfig& config) {
  return static_cast<const T&>(config).tie_word_embeddings;
}

constexpr ChoiceName named(std::string_view name, T5FeedForward kind) {
  return {name, static_cast<std::int64_t>(kind)};
}

constexpr std::array<ChoiceName, 8> feed_forwards{
    {named("relu", T5FeedForward::relu), named("gelu", T5FeedForward::gelu),
     named("gelu_new", T5FeedForward::gelu_new), named("silu", T5FeedForward::silu),
     named("gated-relu", T5FeedForward::gated_relu), named("gated-gelu", T5FeedForward::gated_gelu),
     named("gated-gelu_new", T5FeedForward::gated_gelu),
     named("gated-silu", T5FeedForward::gated_silu)}};

constexpr std::array fields{
    ConfigField{.name = "vocab_size", .access = access_to<&T::vocab_size>, .max = 1 << 24},
    ConfigField{.name = "d_model",
                .access = access_to<&T::d_model>,
                .max = 1 << 18,
                .alias = "hidden_size"},
    ConfigField{.name = "d_kv", .access = access_to<&T::d_kv>, .max = 1 << 12, .alias = "head_dim"},
    ConfigField{.name = "d_ff", .access = access_to<&T::d_ff>, .max = 1 << 20},
    ConfigField{.name = "num_layers",
                .access = access_to<&T::num_layers>,
                .max = 1 << 14,
                .alias = "num_hidden_layers"},
    ConfigField{.name = "num_decoder_layers",
                .access = access_to<&T::num_decoder_layers>,
                .max = 1 << 14,
                .derived = layers_of},
    ConfigField{.name = "num_heads",
                .access = access_to<&T::num_heads>,
                .max = 1 << 14,
                .alias = "num_attention_heads"},
    ConfigField{.name = "relative_attention_num_buckets",
                .access = access_to<&T::relative_attention_num_buckets>,
                .max = 1 << 12,
                .min = 4},
    ConfigField{.name = "relative_attention_max_distance",
                .access = access_to<&T::relative_attention_max_distance>,
                .max = 1 << 24},
    ConfigField{.name = "dropout_rate",
                .access = access_to<&T::dropout_rate>,
                .max = 1,
                .trains_only = true},
    ConfigField{
        .name = "layer_norm_epsilon", .access = access_to<&T::layer_norm_epsilon>, .max = 1},
    ConfigField{.name = "initializer_factor",
                .access = access_to<&T::initializer_factor>,
                .max = 100,
                .trains_only = true},
    ConfigField{.name = "feed_forward_proj",
                .access = access_to<&T::feed_forward_proj>,
                .choices = feed_forwards},
    ConfigField{.name = "tie_word_embeddings", .access = access_to<&T::tie_word_embeddings>},
    ConfigField{.name = "scale_decoder_outputs",
                .access = access_to<&T::scale_decoder_outputs>,
                .derived = scales},
    ConfigField{
        .name = "pad_token_id", .access = access_to<&T::pad_token_id>, .max = 1 << 24, .min = 0},
    ConfigField{.name = "decoder_start_token_id",
                .access = access_to<&T::decoder_start_token_id>,
                .max = 1 << 24,
                .min = 0},
};

constexpr std::array<FixedOption, 1> fixed_options{{{"is_encoder_decoder", "true"}}};

/// As published by their authors, but without dropout.
constexpr std::array<ModelPreset, 5> presets{
    {{"t5-small", R"({"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8,
        "dropout_rate": 0.0})"},
     {"t5-base", R"({"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12,
        "dropout_rate": 0.0})"},
     {"t5-large", R"({"d_model": 1024, "d_kv": 64, "d_ff": 4096, "num_layers": 24,
        "num_heads": 16, "dropout_rate": 0.0})"},
     {"t5-3b", R"({"d_model": 1024, "d_kv": 128, "d_ff": 16384, "num_layers": 24,
        "num_heads": 32, "dropout_rate": 0.0})"},
     {"T0_3B", R"({"d_model": 2048, "d_kv": 64, "d_ff": 5120, "num_layers": 24, "num_heads": 32,
        "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false, "dropout_rate": 0.0})"}}};

std::unique_ptr<ModelConfig> defaults() {
  auto config = std::make_unique<T>();
  config->num_decoder_layers = 0;
  config->dropout_rate = 0.1F;
  return config;
}

// transformers writes this key beside feed_forward_proj, and prefers it when it reads the file.
constexpr const char* activation_key = "dense_act_fn";
constexpr const char* gate_key = "is_gated_act";

template <class Document>
bool says(const Document& document, const char* key) {
  return document.contains(key) && !document.at(key).is_null();
}

template <class Document>
bool is_named(const Document& name, ops::Activation activation) {
  return std::ranges::any_of(hf_activations, [&](const ChoiceName& known) {
    return name == known.name && known.value == static_cast<std::int64_t>(activation);
  });
}

/// The bias of attention to the source, in files of old versions; it is not used.
constexpr std::array<std::string_view, 1> unused{".EncDecAttention.relative_attention_bias.weight"};

constexpr std::array<HfNames::Tied, 3> tied{{{"encoder.embed_tokens.weight", "shared.weight"},
                                             {"decoder.embed_tokens.weight", "shared.weight"},
                                             {hf_head, "shared.weight"}}};

}  // namespace

T5Mlp mlp_of(T5FeedForward kind) {
  using ops::Activation;
  static constexpr std::array<T5Mlp, 7> mlps{{{Activation::relu, false},
                                              {Activation::gelu, false},
                                              {Activation::gelu_tanh, false},
                                              {Activation::silu, false},
                                              {Activation::relu, true},
                                              {Activation::gelu_tanh, true},
                                              {Activation::silu, true}}};
  return mlps.at(static_cast<std::size_t>(kind));
}

const ModelFamily& t5_family() {
  static constexpr ModelFamily family{.model_type = "t5",
                                      .architecture = "T5ForConditionalGeneration",
                                      .fields = fields,
                                      .fixed_options = fixed_options,
                                      .text_tokens = {{}, 1},
                                      .presets = presets,
                                      .defaults = defaults};
  return family;
}

Model T5Config::make(const UnitOptions& options) const {
  return make_t5(*this, options);
}

ModelConfig::Parts T5Config::parts() const {
  return {.norm = "RMSNorm",
          .positions = "relative",
          .swiglu = feed_forward_proj == T5FeedForward::gated_silu,
          .tied = tie_word_embeddings,
          .heads = num_heads,
          .key_value_heads = num_heads};
}

HfNames T5Config::hf_names() const {
  const std::size_t count = tie_word_embeddings ? tied.size() : tied.size() - 1;
  return {.buffers = unused, .tied = std::span(tied).first(count)};
}

void T5Config::read_more(const nlohmann::json& document, const std::string& path) {
  const T5Mlp mlp = mlp_of(feed_forward_proj);
  const auto refuse = [&](const char* key) {
    const auto kind = std::ranges::find(feed_forwards, static_cast<std::int64_t>(feed_forward_proj),
                                        &ChoiceName::value);
    fail(ErrorCode::input,
         "{}: feed_forward_proj is \"{}\", but {} is {}, which transformers goes by; make them "
         "agree, "
         "or remove {}",
         path, kind->name, key, document.at(key).dump(), key);
  };
  if (says(document, gate_key) && document.at(gate_key) != mlp.gated) refuse(gate_key);
  if (says(document, activation_key) && !is_named(document.at(activation_key), mlp.activation)) {
    refuse(activation_key);
  }
}

void T5Config::write_more(nlohmann::ordered_json& document) const {
  const T5Mlp mlp = mlp_of(feed_forward_proj);
  if (says(document, gate_key)) document[gate_key] = mlp.gated;
  if (!says(document, activation_key) || is_named(document.at(activation_key), mlp.activation)) {
    return;
  }
  document[activation_key] =
      std::ranges::find(hf_activations, static_cast<std::int64_t>(mlp.activation),
                        &ChoiceName::value)
          ->name;
}

/// transformers 5 writes that every T5 is tied; one without scaled head inputs may have its own
/// head.
void T5Config::settle(const StoredTensor& stored) {
  if (!scale_decoder_outputs) tie_word_embeddings = !stored(hf_head);
}

void T5Config::check_more(std::vector<std::string>& problems) const {
  const std::int64_t exact = relative_attention_num_buckets / 2;  // of the decoder, which has more
  if (relative_attention_max_distance <= exact) {
    problems.push_back(
        fmt::format("relative_attention_max_distance {} is not above {}, half of the "
                    "buckets",
                    relative_attention_max_distance, exact));
  }
  if (!(initializer_factor > 0)) problems.emplace_back("initializer_factor must be above 0");
  if (scale_decoder_outputs && !tie_word_embeddings) {
    problems.emplace_back(
        "scale_decoder_outputs is true and tie_word_embeddings false; only a tied head scales");
  }
  for (const auto& [key, id] : {std::pair("pad_token_id", pad_token_id),
                                std::pair("decoder_start_token_id", decoder_start_token_id)}) {
    if (id >= vocab_size) {
      problems.push_back(fmt::format("{} {} is not below vocab_size {}", key, id, vocab_size));
    }
  }
}

}  // namespace dstrain::model
