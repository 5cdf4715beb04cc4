#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/model/config_fields.h"
#include "runtime/model/hf_names.h"

namespace dstrain::model {

/// Sizes that have a name: the text of a config.json, of which keys may be absent.
struct ModelPreset {
  std::string_view name;
  std::string_view config_json;
};

/// What all models have in common whose config.json has one model_type.
struct ModelFamily {
  std::string_view model_type;
  std::string_view architecture;  ///< the class of transformers that reads them
  std::span<const ConfigField> fields;
  std::span<const FixedOption> fixed_options{};
  TextTokens text_tokens{};               ///< of Hugging Face, where config.json does not say
  std::optional<std::int32_t> padding{};  ///< likewise: pad_token_id
  std::span<const ModelPreset> presets{};
  /// Of Hugging Face, where config.json does not say; a size that follows from others is 0.
  std::unique_ptr<ModelConfig> (*defaults)() = nullptr;
};

}  // namespace dstrain::model
