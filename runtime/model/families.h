#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/model/model_config.h"
#include "runtime/model/model_family.h"

namespace dstrain::model {

/// All that can be trained.
std::span<const ModelFamily* const> model_families();

/// Reads the text of a config.json (`path` is for messages), of the family that its model_type
/// names. A key that is absent has Hugging Face's default. Unknown keys are kept for to_json() and
/// else ignored, as there are many that do not matter; a model_type, activation or option that
/// would change the numbers and is not built is an error. Throws Error{input} naming the file and
/// the key.
std::unique_ptr<ModelConfig> parse_model_config(const std::string& text, const std::string& path);

bool is_model_preset(std::string_view name);

/// Of a preset's name: "gpt2", "llama-3-8b". Throws Error{usage} that lists the presets.
std::unique_ptr<ModelConfig> model_preset(std::string_view name);

/// The configuration that --config_name means: a preset's name, a config.json, or a directory that
/// holds one. Throws Error{usage} or Error{input}.
std::unique_ptr<ModelConfig> load_model_config(const std::string& name_or_path);

/// The configuration of a Hugging Face directory, which holds weights beside it, settled by these.
/// Throws Error{input}.
std::unique_ptr<ModelConfig> load_stored_config(const std::string& directory);

}  // namespace dstrain::model
