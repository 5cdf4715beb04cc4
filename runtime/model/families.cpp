#include "runtime/model/families.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/base/units.h"
#include "runtime/model/gpt2_config.h"
#include "runtime/model/hf_directory.h"
#include "runtime/model/llama_config.h"
#include "runtime/model/t5_config.h"
#include "runtime/os/file.h"

namespace dstrain::model {
namespace {

std::string type_list() {
  std::vector<std::string_view> types;
  for (const ModelFamily* const family : model_families()) types.push_back(family->model_type);
  return quoted_list(types);
}

std::string preset_list() {
  std::vector<std::string_view> names;
  for (const ModelFamily* const family : model_families()) {
    for (const ModelPreset& preset : family->presets) names.push_back(preset.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Makes a preset whose source has every key, so that config.json does not depend on defaults.
std::unique_ptr<ModelConfig> make_preset(const ModelFamily& family, const ModelPreset& preset) {
  std::unique_ptr<ModelConfig> config = family.defaults();
  config->read(std::string(preset.config_json), std::string(preset.name));
  config->source.clear();
  auto document = nlohmann::ordered_json::parse(config->to_json());
  document.update(nlohmann::ordered_json::parse(preset.config_json));
  config->source = document.dump();
  return config;
}

}  // namespace

std::span<const ModelFamily* const> model_families() {
  static const std::array families{&gpt2_family(),  &llama_family(), &mistral_family(),
                                   &qwen2_family(), &qwen3_family(), &phi3_family(),
                                   &t5_family()};
  return families;
}

std::unique_ptr<ModelConfig> parse_model_config(const std::string& text, const std::string& path) {
  const nlohmann::json type = parse_json_object(text, path).value("model_type", nlohmann::json());
  for (const ModelFamily* const family : model_families()) {
    if (type != family->model_type) continue;
    std::unique_ptr<ModelConfig> config = family->defaults();
    config->read(text, path);
    return config;
  }
  if (is_own_model(text)) {
    fail(ErrorCode::input,
         "{}: a program has described this model, {}; only that program can run it, with the "
         "weights by ModelBuilder::build(DIRECTORY)",
         path, type.dump());
  }
  fail(ErrorCode::input, "{}: model_type is {}; only {} are built", path, type.dump(), type_list());
}

bool is_own_model(const std::string& config_json) {
  const nlohmann::json config = nlohmann::json::parse(config_json, nullptr, false);
  return config.is_object() && config.value(own_model_key, false);
}

bool is_model_preset(std::string_view name) {
  return std::ranges::any_of(model_families(), [&](const ModelFamily* family) {
    return std::ranges::find(family->presets, name, &ModelPreset::name) != family->presets.end();
  });
}

std::unique_ptr<ModelConfig> model_preset(std::string_view name) {
  for (const ModelFamily* const family : model_families()) {
    for (const ModelPreset& preset : family->presets) {
      if (preset.name == name) return make_preset(*family, preset);
    }
  }
  fail(ErrorCode::usage,
       "model '{}': no such preset, file or directory; presets are {}; a config.json works too",
       name, preset_list());
}

std::unique_ptr<ModelConfig> load_model_config(const std::string& name_or_path) {
  if (is_model_preset(name_or_path)) return model_preset(name_or_path);
  std::filesystem::path path(name_or_path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
  if (!std::filesystem::exists(path, ignored) && path == name_or_path) {
    return model_preset(name_or_path);  // throws
  }
  return parse_model_config(read_text_file(path, mebibyte), path.string());
}

std::unique_ptr<ModelConfig> load_stored_config(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory) / "config.json";
  auto config = parse_model_config(read_text_file(path, mebibyte), path.string());
  config->settle([&](std::string_view name) { return stores_tensor(directory, name); });
  return config;
}

}  // namespace dstrain::model
