#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/model/model_config.h"
#include "runtime/model/model_family.h"

namespace dstrain::model {

/// Returns all families that can be trained.
std::span<const ModelFamily* const> model_families();

/// Parses a config.json (`path` is for messages) of the family that its model_type names. Absent
/// keys have Hugging Face's defaults. Unknown keys are kept for to_json() and otherwise ignored,
/// because many of them do not matter; a model_type, activation or option that would change the
/// numbers and is not supported is an error. Throws Error{input} naming the file and the key.
std::unique_ptr<ModelConfig> parse_model_config(const std::string& text, const std::string& path);

/// Marks the config.json of a model that is of no family: a library's user has described it.
inline constexpr const char* own_model_key = "dstrain_own_model";
/// Whether a config.json has that mark.
bool is_own_model(const std::string& config_json);

bool is_model_preset(std::string_view name);

/// Returns the preset of that name: "gpt2", "llama-3-8b". Throws Error{usage} that lists the
/// presets.
std::unique_ptr<ModelConfig> model_preset(std::string_view name);

/// Returns the configuration for --config_name: a preset's name, a config.json, or a directory with
/// one. Throws Error{usage} or Error{input}.
std::unique_ptr<ModelConfig> load_model_config(const std::string& name_or_path);

/// Returns the configuration of a Hugging Face directory, settled by the weights beside it. Throws
/// Error{input}.
std::unique_ptr<ModelConfig> load_stored_config(const std::string& directory);

}  // namespace dstrain::model
