#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/model/config_fields.h"
#include "runtime/model/hf_names.h"

namespace dstrain::model {

/// A named set of sizes: the text of a config.json, in which keys may be absent.
struct ModelPreset {
  std::string_view name;
  std::string_view config_json;
};

/// The common properties of all models with one model_type in config.json.
struct ModelFamily {
  std::string_view model_type;
  std::string_view architecture;  ///< their class in transformers
  std::span<const ConfigField> fields;
  std::span<const FixedOption> fixed_options{};
  TextTokens text_tokens{};               ///< Hugging Face's defaults
  std::optional<std::int32_t> padding{};  ///< Hugging Face's default of pad_token_id
  std::span<const ModelPreset> presets{};
  /// Makes Hugging Face's defaults; a size derived from others is 0.
  std::unique_ptr<ModelConfig> (*defaults)() = nullptr;
};

}  // namespace dstrain::model
