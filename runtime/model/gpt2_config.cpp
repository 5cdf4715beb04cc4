#include "runtime/model/gpt2_config.h"

#include <array>

#include <fmt/format.h>

#include "runtime/model/gpt2.h"
#include "runtime/model/hf_activations.h"

namespace dstrain::model {
namespace {

using G = Gpt2Config;

constexpr std::int32_t end_of_text = 50256;

ConfigValue inner_of(const ModelConfig& config) {
  return 4 * static_cast<const G&>(config).n_embd;
}

constexpr std::array fields{
    ConfigField{.name = "vocab_size", .access = access_to<&G::vocab_size>, .max = 1 << 24},
    ConfigField{.name = "n_positions",
                .access = access_to<&G::n_positions>,
                .max = 1 << 24,
                .alias = "max_position_embeddings",
                .mirror = "n_ctx"},
    ConfigField{
        .name = "n_embd", .access = access_to<&G::n_embd>, .max = 1 << 18, .alias = "hidden_size"},
    ConfigField{.name = "n_layer",
                .access = access_to<&G::n_layer>,
                .max = 1 << 14,
                .alias = "num_hidden_layers"},
    ConfigField{.name = "n_head",
                .access = access_to<&G::n_head>,
                .max = 1 << 14,
                .alias = "num_attention_heads"},
    ConfigField{.name = "n_inner",
                .access = access_to<&G::n_inner>,
                .max = 1 << 20,
                .derived = inner_of,
                .null_when_derived = true},
    ConfigField{
        .name = "layer_norm_epsilon", .access = access_to<&G::layer_norm_epsilon>, .max = 1},
    ConfigField{.name = "initializer_range",
                .access = access_to<&G::initializer_range>,
                .max = 100,
                .trains_only = true},
    ConfigField{
        .name = "embd_pdrop", .access = access_to<&G::embd_pdrop>, .max = 1, .trains_only = true},
    ConfigField{
        .name = "attn_pdrop", .access = access_to<&G::attn_pdrop>, .max = 1, .trains_only = true},
    ConfigField{
        .name = "resid_pdrop", .access = access_to<&G::resid_pdrop>, .max = 1, .trains_only = true},
    ConfigField{.name = "activation_function",
                .access = access_to<&G::activation_function>,
                .choices = hf_activations},
    ConfigField{.name = "tie_word_embeddings", .access = access_to<&G::tie_word_embeddings>},
    ConfigField{.name = "scale_attn_weights", .access = access_to<&G::scale_attn_weights>},
    ConfigField{.name = "scale_attn_by_inverse_layer_idx",
                .access = access_to<&G::scale_attn_by_inverse_layer_idx>},
};

// reorder_and_upcast_attn asks for scores in f32, which they are in any case.
constexpr std::array<FixedOption, 1> fixed_options{{{"add_cross_attention", "false"}}};

/// Without dropout, as in their training.
constexpr std::array<ModelPreset, 4> presets{
    {{"gpt2", R"({"n_embd": 768, "n_layer": 12, "n_head": 12,
        "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0})"},
     {"gpt2-medium", R"({"n_embd": 1024, "n_layer": 24, "n_head": 16,
        "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0})"},
     {"gpt2-large", R"({"n_embd": 1280, "n_layer": 36, "n_head": 20,
        "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0})"},
     {"gpt2-xl", R"({"n_embd": 1600, "n_layer": 48, "n_head": 25,
        "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0})"}}};

std::unique_ptr<ModelConfig> defaults() {
  constexpr float dropout = 0.1F;
  auto config = std::make_unique<G>();
  config->n_inner = 0;
  config->embd_pdrop = dropout;
  config->attn_pdrop = dropout;
  config->resid_pdrop = dropout;
  return config;
}

/// Buffers with causal masks, in files of old versions.
constexpr std::array<std::string_view, 2> masks{".attn.bias", ".attn.masked_bias"};

constexpr std::array<HfNames::Tied, 1> tied_names{{{hf_head, "wte.weight"}}};

}  // namespace

const ModelFamily& gpt2_family() {
  static constexpr ModelFamily family{.model_type = "gpt2",
                                      .architecture = "GPT2LMHeadModel",
                                      .fields = fields,
                                      .fixed_options = fixed_options,
                                      .text_tokens = {end_of_text, end_of_text},
                                      .presets = presets,
                                      .defaults = defaults};
  return family;
}

Model Gpt2Config::make(const UnitOptions& options) const {
  return make_gpt2(*this, options);
}

HfNames Gpt2Config::hf_names() const {
  HfNames names{.prefix = "transformer.", .buffers = masks};
  if (tie_word_embeddings) names.tied = tied_names;
  return names;
}

ModelConfig::Parts Gpt2Config::parts() const {
  return {.norm = "LayerNorm",
          .positions = "learned_absolute",
          .biases = true,
          .qkv_biases = true,
          .tied = tie_word_embeddings,
          .heads = n_head,
          .key_value_heads = n_head};
}

void Gpt2Config::check_more(std::vector<std::string>& problems) const {
  if (n_embd % n_head != 0) {
    problems.push_back(fmt::format("n_embd {} is not a multiple of n_head {}", n_embd, n_head));
  }
}

}  // namespace dstrain::model
