#include "runtime/model/llama_config.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/model/hf_activations.h"
#include "runtime/model/llama.h"
#include "runtime/model/llama_presets.h"

namespace dstrain::model {
namespace {

using L = LlamaConfig;

const L& llama(const ModelConfig& config) {
  return static_cast<const L&>(config);
}

ConfigValue heads_of(const ModelConfig& config) {
  return llama(config).num_attention_heads;
}

ConfigValue head_dim_of(const ModelConfig& config) {
  return llama(config).hidden_size / llama(config).num_attention_heads;
}

/// One key for both, for a family that has biases at all of these projections or at none.
constexpr ConfigAccess attention_biases{
    .kind = ConfigAccess::Kind::flag,
    .get = [](const ModelConfig& config) -> ConfigValue { return llama(config).qkv_bias; },
    .set =
        [](ModelConfig& config, const ConfigValue& value) {
          auto& target = static_cast<L&>(config);
          target.qkv_bias = std::get<bool>(value);
          target.output_bias = target.qkv_bias;
        }};

/// For a family whose rotations can only be scaled by longrope.
constexpr ConfigAccess original_length_access{
    .kind = ConfigAccess::Kind::size,
    .get = [](const ModelConfig& config) -> ConfigValue {
      return llama(config).rope_scaling.original_positions;
    },
    .set =
        [](ModelConfig& config, const ConfigValue& value) {
          static_cast<L&>(config).rope_scaling.original_positions = std::get<std::int64_t>(value);
        }};

constexpr ConfigAccess rotation{.kind = ConfigAccess::Kind::text,
                                .get = [](const ModelConfig& config) -> ConfigValue {
                                  return to_json_text(llama(config).rope_scaling);
                                }};

constexpr std::array common_fields{
    ConfigField{.name = "vocab_size", .access = access_to<&L::vocab_size>, .max = 1 << 24},
    ConfigField{.name = "hidden_size", .access = access_to<&L::hidden_size>, .max = 1 << 18},
    ConfigField{
        .name = "intermediate_size", .access = access_to<&L::intermediate_size>, .max = 1 << 20},
    ConfigField{
        .name = "num_hidden_layers", .access = access_to<&L::num_hidden_layers>, .max = 1 << 14},
    ConfigField{.name = "num_attention_heads",
                .access = access_to<&L::num_attention_heads>,
                .max = 1 << 14},
    ConfigField{.name = "num_key_value_heads",
                .access = access_to<&L::num_key_value_heads>,
                .max = 1 << 14,
                .derived = heads_of},
    ConfigField{
        .name = "hidden_act", .access = access_to<&L::hidden_act>, .choices = hf_activations},
    ConfigField{.name = "max_position_embeddings",
                .access = access_to<&L::max_position_embeddings>,
                .max = 1 << 24},
    ConfigField{.name = "initializer_range",
                .access = access_to<&L::initializer_range>,
                .max = 100,
                .trains_only = true},
    ConfigField{.name = "rms_norm_eps", .access = access_to<&L::rms_norm_eps>, .max = 1},
    ConfigField{.name = "tie_word_embeddings", .access = access_to<&L::tie_word_embeddings>},
    ConfigField{
        .name = "rope_theta", .access = access_to<&L::rope_theta>, .max = std::int64_t{1} << 40},
    ConfigField{.name = "rope_scaling", .access = rotation},
    ConfigField{.name = "attention_dropout",
                .access = access_to<&L::attention_dropout>,
                .max = 1,
                .trains_only = true},
};

constexpr std::int64_t head_dim_max = 1 << 12;
constexpr ConfigField derived_head_dim{.name = "head_dim",
                                       .access = access_to<&L::head_dim>,
                                       .max = head_dim_max,
                                       .derived = head_dim_of};
constexpr ConfigField own_head_dim{
    .name = "head_dim", .access = access_to<&L::head_dim>, .max = head_dim_max};
constexpr ConfigField attention_bias{.name = "attention_bias", .access = attention_biases};
constexpr ConfigField mlp_bias{.name = "mlp_bias", .access = access_to<&L::mlp_bias>};
constexpr ConfigField sliding_window{.name = "sliding_window",
                                     .access = access_to<&L::sliding_window>,
                                     .max = 1 << 24,
                                     .min = 0,
                                     .null_is_zero = true};
constexpr ConfigField use_sliding_window{.name = "use_sliding_window",
                                         .access = access_to<&L::use_sliding_window>};
constexpr ConfigField max_window_layers{.name = "max_window_layers",
                                        .access = access_to<&L::max_window_layers>,
                                        .max = 1 << 14,
                                        .min = 0};

constexpr ConfigField partial_rotary{
    .name = "partial_rotary_factor", .access = access_to<&L::partial_rotary_factor>, .max = 2};
constexpr ConfigField original_length{
    .name = "original_max_position_embeddings", .access = original_length_access, .max = 1 << 24};
constexpr ConfigField embedding_dropout{
    .name = "embd_pdrop", .access = access_to<&L::embd_pdrop>, .max = 1, .trains_only = true};
constexpr ConfigField residual_dropout{
    .name = "resid_pdrop", .access = access_to<&L::resid_pdrop>, .max = 1, .trains_only = true};

template <class... Field>
constexpr auto with(Field... more) {
  std::array<ConfigField, common_fields.size() + sizeof...(more)> fields{};
  std::size_t count = 0;
  for (const ConfigField& field : common_fields) fields[count++] = field;
  ((fields[count++] = more), ...);
  return fields;
}

constexpr auto llama_fields = with(derived_head_dim, attention_bias, mlp_bias);
constexpr auto mistral_fields = with(derived_head_dim, sliding_window);
constexpr auto qwen2_fields =
    with(derived_head_dim, use_sliding_window, sliding_window, max_window_layers);
constexpr auto qwen3_fields =
    with(own_head_dim, attention_bias, use_sliding_window, sliding_window, max_window_layers);

constexpr auto phi3_fields = with(derived_head_dim,
                                  sliding_window,
                                  partial_rotary,
                                  original_length,
                                  embedding_dropout,
                                  residual_dropout);

constexpr std::array<FixedOption, 3> phi3_options{
    {{"attention_bias", "false"}, {"mlp_bias", "false"}, {"lm_head_bias", "false"}}};

constexpr TextTokens text_tokens{1, 2};
constexpr std::int32_t phi3_end = 32000;

std::unique_ptr<L> defaults_of(const ModelFamily& family) {
  auto config = std::make_unique<L>(family);
  config->num_key_value_heads = 0;
  config->head_dim = 0;
  return config;
}

std::unique_ptr<ModelConfig> llama_defaults() {
  return defaults_of(llama_family());
}

std::unique_ptr<ModelConfig> mistral_defaults() {
  auto config = defaults_of(mistral_family());
  config->intermediate_size = 14336;
  config->num_key_value_heads = 8;
  config->max_position_embeddings = 131072;
  config->sliding_window = 4096;
  return config;
}

std::unique_ptr<L> qwen_defaults(const ModelFamily& family) {
  auto config = defaults_of(family);
  config->vocab_size = 151936;
  config->intermediate_size = 22016;
  config->num_key_value_heads = 32;
  config->max_position_embeddings = 32768;
  config->sliding_window = 4096;
  config->use_sliding_window = false;
  config->max_window_layers = 28;
  return config;
}

std::unique_ptr<ModelConfig> qwen2_defaults() {
  auto config = qwen_defaults(qwen2_family());
  config->qkv_bias = true;
  return config;
}

std::unique_ptr<ModelConfig> qwen3_defaults() {
  auto config = qwen_defaults(qwen3_family());
  config->head_dim = 128;
  config->head_norms = true;
  return config;
}

std::unique_ptr<ModelConfig> phi3_defaults() {
  auto config = defaults_of(phi3_family());
  config->packed_projections = true;
  config->vocab_size = 32064;
  config->hidden_size = 3072;
  config->intermediate_size = 8192;
  config->max_position_embeddings = 4096;
  config->rms_norm_eps = 1e-5F;
  config->rope_scaling.original_positions = 4096;
  return config;
}

/// Buffers in files of old versions.
constexpr std::array<std::string_view, 1> frequencies{".rotary_emb.inv_freq"};

constexpr std::string_view full = "full_attention";
constexpr std::string_view sliding = "sliding_attention";

bool has_key(const ModelFamily& family, const ConfigField& key) {
  return std::ranges::find(family.fields, key.name, &ConfigField::name) != family.fields.end();
}

/// Whether config.json can list the layers that have a window.
bool has_layer_types(const ModelFamily& family) {
  return has_key(family, max_window_layers);
}

bool states(const nlohmann::json& values, std::string_view key) {
  const auto found = values.find(key);
  return found != values.end() && !found->is_null();
}

float number_in(const RopeSection& section, std::string_view key, const std::string& path) {
  const nlohmann::json& number = *section.values->find(key);
  if (number.is_number()) return number.get<float>();
  fail(ErrorCode::input, "{}: {}.{} must be a number, got {}", path, section.key, key,
       number.dump());
}

/// Replaces `value`, from the document or the default, by that in the sections. All sections must
/// agree, because the version of transformers decides which one it reads.
void read_from_sections(float& value,
                        std::string_view key,
                        const nlohmann::json& document,
                        const std::string& path) {
  const float outside = value;
  bool first = true;
  for (const RopeSection& section : rope_sections(document, path)) {
    const bool stated = states(*section.values, key);
    const float inside = stated ? number_in(section, key, path) : outside;
    // transformers 5 adds a 1 outside of rope_parameters, whatever these say.
    const bool added = key == partial_rotary.name && outside == 1;
    if (stated && states(document, key) && inside != outside && !added) {
      fail(ErrorCode::input, "{}: {} is {}, but {}.{} is {}; keep one", path, key, outside,
           section.key, key, inside);
    }
    if (!first && inside != value) {
      fail(ErrorCode::input,
           "{}: {} is {} in rope_parameters but {} in rope_scaling, which transformers reads "
           "instead; put all settings into one of them and remove the other",
           path, key, value, inside);
    }
    value = inside;
    first = false;
  }
}

/// Sets a section's value to that of the document if it differs from `value`.
void write_to_sections(nlohmann::ordered_json& document, const std::string& key, float value) {
  for (const char* const section : {"rope_parameters", "rope_scaling"}) {
    if (!document.contains(section) || !document[section].is_object()) continue;
    auto& values = document[section];
    const bool other =
        values.contains(key) && values[key].is_number() && values[key].get<float>() != value;
    if (other) values[key] = document[key];
  }
}

nlohmann::json layer_types_of(const L& config) {
  nlohmann::json types = nlohmann::json::array();
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    types.push_back(config.window(layer) > 0 ? sliding : full);
  }
  return types;
}

/// Reads the list, in newer files, of the layers that have a window.
void read_layer_types(L& config, const nlohmann::json& types, const std::string& path) {
  const bool complete =
      types.is_array() && static_cast<std::int64_t>(types.size()) == config.num_hidden_layers;
  if (complete && config.use_sliding_window && config.sliding_window > 0) {
    const auto first = std::ranges::find_if(types, [](const auto& type) { return type != full; });
    config.max_window_layers = first - types.begin();
  }
  if (complete && types == layer_types_of(config)) return;
  fail(ErrorCode::input,
       "{}: layer_types: must be of {} layers, \"{}\" and then, where the configuration has a "
       "sliding_window, \"{}\"; nothing else is built",
       path, config.num_hidden_layers, full, sliding);
}

constexpr std::array<HfNames::Tied, 1> tied{{{hf_head, "embed_tokens.weight"}}};

}  // namespace

const ModelFamily& llama_family() {
  static constexpr ModelFamily family{.model_type = "llama",
                                      .architecture = "LlamaForCausalLM",
                                      .fields = llama_fields,
                                      .text_tokens = text_tokens,
                                      .presets = llama_presets,
                                      .defaults = llama_defaults};
  return family;
}

const ModelFamily& mistral_family() {
  static constexpr ModelFamily family{.model_type = "mistral",
                                      .architecture = "MistralForCausalLM",
                                      .fields = mistral_fields,
                                      .text_tokens = text_tokens,
                                      .presets = mistral_presets,
                                      .defaults = mistral_defaults};
  return family;
}

const ModelFamily& qwen2_family() {
  static constexpr ModelFamily family{.model_type = "qwen2",
                                      .architecture = "Qwen2ForCausalLM",
                                      .fields = qwen2_fields,
                                      .presets = qwen2_presets,
                                      .defaults = qwen2_defaults};
  return family;
}

const ModelFamily& qwen3_family() {
  static constexpr ModelFamily family{.model_type = "qwen3",
                                      .architecture = "Qwen3ForCausalLM",
                                      .fields = qwen3_fields,
                                      .presets = qwen3_presets,
                                      .defaults = qwen3_defaults};
  return family;
}

const ModelFamily& phi3_family() {
  static constexpr ModelFamily family{.model_type = "phi3",
                                      .architecture = "Phi3ForCausalLM",
                                      .fields = phi3_fields,
                                      .fixed_options = phi3_options,
                                      .text_tokens = {1, phi3_end},
                                      .padding = phi3_end,
                                      .presets = phi3_presets,
                                      .defaults = phi3_defaults};
  return family;
}

Model LlamaConfig::make(const UnitOptions& options) const {
  return make_llama(*this, options);
}

HfNames LlamaConfig::hf_names() const {
  HfNames names{.prefix = "model.", .buffers = frequencies};
  if (tie_word_embeddings) names.tied = tied;
  return names;
}

ModelConfig::Parts LlamaConfig::parts() const {
  return {.norm = "RMSNorm",
          .positions = "rope",
          .swiglu = hidden_act == ops::Activation::silu,
          .biases = output_bias || mlp_bias,
          .qkv_biases = qkv_bias,
          .tied = tie_word_embeddings,
          .heads = num_attention_heads,
          .key_value_heads = num_key_value_heads};
}

std::int64_t LlamaConfig::window(std::int64_t layer) const {
  return use_sliding_window && layer >= max_window_layers ? sliding_window : 0;
}

std::int64_t LlamaConfig::rotary_dims() const {
  // As in transformers: in double, from the number in the file.
  return static_cast<std::int64_t>(static_cast<double>(head_dim) *
                                   shortest_decimal(partial_rotary_factor));
}

void LlamaConfig::read_more(const nlohmann::json& document, const std::string& path) {
  const bool partial = has_key(family(), partial_rotary);
  rope_scaling = read_rope_scaling(
      document, path,
      {partial, has_key(family(), original_length) ? rope_scaling.original_positions : 0});
  read_from_sections(rope_theta, "rope_theta", document, path);
  if (partial) read_from_sections(partial_rotary_factor, partial_rotary.name, document, path);
  const auto types = document.find("layer_types");
  const bool listed = types != document.end() && !types->is_null();
  if (listed && has_layer_types(family())) read_layer_types(*this, *types, path);
}

void LlamaConfig::write_more(nlohmann::ordered_json& document) const {
  if (source.empty() && rope_scaling.kind != RopeScaling::Kind::none) {
    document["rope_scaling"] = nlohmann::ordered_json::parse(to_json_text(rope_scaling));
  }
  write_to_sections(document, "rope_theta", rope_theta);
  const bool partial = has_key(family(), partial_rotary);
  if (partial) {
    write_to_sections(document, std::string(partial_rotary.name), partial_rotary_factor);
  }
  if (rope_sections(nlohmann::json(document), "config.json").size() > 1) {
    // transformers 4 and 5 read this section, together with the keys outside of it, so one is
    // enough.
    document.erase("rope_parameters");
    document["rope_theta"] = shortest_decimal(rope_theta);
    if (partial) document[partial_rotary.name] = shortest_decimal(partial_rotary_factor);
  }
  if (has_key(family(), original_length)) {
    write_to_sections(document, std::string(original_length.name),
                      static_cast<float>(rope_scaling.original_positions));
  }
  // Without a list, transformers makes one from max_window_layers.
  const bool other_layers = has_layer_types(family()) && document.contains("layer_types") &&
                            nlohmann::json(document["layer_types"]) != layer_types_of(*this);
  if (!other_layers) return;
  document.erase("layer_types");
  document["max_window_layers"] = max_window_layers;
}

void LlamaConfig::check_more(std::vector<std::string>& problems) const {
  if (num_attention_heads % num_key_value_heads != 0) {
    problems.push_back(
        fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                    num_attention_heads, num_key_value_heads));
  }
  if (ConfigValue(head_dim) == head_dim_of(*this) && hidden_size % num_attention_heads != 0) {
    problems.push_back(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                   hidden_size, num_attention_heads));
  }
  if (!(rope_theta > 0)) problems.emplace_back("rope_theta must be above 0");
  check_rotation(problems);
}

void LlamaConfig::check_rotation(std::vector<std::string>& problems) const {
  const std::int64_t dims = rotary_dims();
  if (dims > ops::Rotary::dims_max) {
    problems.push_back(
        fmt::format("head_dim {}: positions rotate {} features of a head; at most {} are supported",
                    head_dim, dims, ops::Rotary::dims_max));
  } else if (partial_rotary_factor == 1 && head_dim % 2 != 0) {
    problems.push_back(
        fmt::format("head_dim {} is odd: positions rotate pairs of features", head_dim));
  } else if (dims < 2 || dims > head_dim || dims % 2 != 0) {
    problems.push_back(
        fmt::format("partial_rotary_factor {}: positions rotate pairs of features, not {} of {}",
                    partial_rotary_factor, dims, head_dim));
  }
  if (rope_scaling.kind != RopeScaling::Kind::longrope) return;
  for (const auto& [name, factors] : {std::pair("short_factor", &rope_scaling.short_factors),
                                      std::pair("long_factor", &rope_scaling.long_factors)}) {
    if (static_cast<std::int64_t>(factors->size()) == dims / 2) continue;
    problems.push_back(fmt::format("rope_scaling.{} has {} numbers for {} rotated pairs", name,
                                   factors->size(), dims / 2));
  }
  if (rope_scaling.original_positions < 2) {
    problems.emplace_back("original_max_position_embeddings must be above 1 for longrope");
  }
}

}  // namespace dstrain::model
