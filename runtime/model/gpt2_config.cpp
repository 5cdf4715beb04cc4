#include "runtime/model/gpt2_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/model/gpt2_config_fields.h"

namespace dstrain::model {
namespace {

struct Preset {
  std::string_view name;
  std::int64_t n_embd;
  std::int64_t n_layer;
  std::int64_t n_head;
};

constexpr std::array<Preset, 4> presets{{{"gpt2", 768, 12, 12},
                                         {"gpt2-medium", 1024, 24, 16},
                                         {"gpt2-large", 1280, 36, 20},
                                         {"gpt2-xl", 1600, 48, 25}}};

const Preset* find_preset(std::string_view name) {
  const auto* const found = std::find_if(presets.begin(), presets.end(),
                                         [&](const Preset& row) { return row.name == name; });
  return found == presets.end() ? nullptr : found;
}

std::string preset_names() {
  std::vector<std::string_view> names;
  names.reserve(presets.size());
  for (const Preset& preset : presets) names.push_back(preset.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Whether all of `text` is one number of this type.
template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

/// Returns the key that was set.
std::string_view apply_override(Gpt2Config& config, std::string_view item) {
  const auto equals = item.find('=');
  const std::string_view key = trimmed(item.substr(0, equals));
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : trimmed(item.substr(equals + 1));
  for (const SizeField& field : size_fields) {
    if (field.name != key) continue;
    if (!parse_number(value, config.*field.member)) {
      fail(ErrorCode::usage, "config override '{}': {} needs a whole number", trimmed(item), key);
    }
    return key;
  }
  for (const RateField& field : rate_fields) {
    if (field.name != key) continue;
    if (!parse_number(value, config.*field.member)) {
      fail(ErrorCode::usage, "config override '{}': {} needs a number", trimmed(item), key);
    }
    return key;
  }
  fail(ErrorCode::usage, "config override '{}': unknown key; known are {}", trimmed(item),
       field_names());
}

}  // namespace

Gpt2Config gpt2_preset(std::string_view name) {
  const Preset* const preset = find_preset(name);
  if (preset == nullptr && name.starts_with("llama")) {
    fail(ErrorCode::usage, "model '{}': Llama models are not implemented; known are {}", name,
         preset_names());
  }
  if (preset == nullptr) {
    fail(ErrorCode::usage,
         "model '{}': no such preset, file or directory; presets are {}; a config.json works too",
         name, preset_names());
  }
  Gpt2Config config;
  config.n_embd = preset->n_embd;
  config.n_layer = preset->n_layer;
  config.n_head = preset->n_head;
  config.n_inner = 4 * preset->n_embd;
  return config;
}

Gpt2Config load_gpt2_config(const std::string& name_or_path) {
  if (find_preset(name_or_path) != nullptr) return gpt2_preset(name_or_path);
  std::filesystem::path path(name_or_path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
  if (!std::filesystem::exists(path, ignored) && path == name_or_path) {
    return gpt2_preset(name_or_path);  // refuses
  }
  return parse_gpt2_config(read_text_file(path, mebibyte), path.string());
}

void apply_overrides(Gpt2Config& config, std::string_view overrides) {
  if (trimmed(overrides).empty()) return;
  bool inner_follows = config.n_inner == 4 * config.n_embd;
  for (std::size_t begin = 0; begin <= overrides.size();) {
    const std::size_t end = std::min(overrides.find(',', begin), overrides.size());
    const auto key = apply_override(config, overrides.substr(begin, end - begin));
    inner_follows = inner_follows && key != "n_inner";
    begin = end + 1;
  }
  const std::vector<std::string> problems = range_problems(config);
  if (!problems.empty()) {
    fail(ErrorCode::usage, "config overrides '{}': {}", overrides, fmt::join(problems, "; "));
  }
  if (inner_follows) config.n_inner = 4 * config.n_embd;
}

std::vector<ConfigDifference> differences(const Gpt2Config& before, const Gpt2Config& after) {
  std::vector<ConfigDifference> found;
  const auto compare = [&](std::string_view key, auto left, auto right) {
    if (left != right) found.push_back({key, fmt::to_string(left), fmt::to_string(right)});
  };
  for (const SizeField& field : size_fields) {
    compare(field.name, before.*field.member, after.*field.member);
  }
  compare("layer_norm_epsilon", before.layer_norm_epsilon, after.layer_norm_epsilon);
  return found;
}

void check(const Gpt2Config& config) {
  std::vector<std::string> problems = range_problems(config);
  if (problems.empty() && config.n_embd % config.n_head != 0) {
    problems.push_back(
        fmt::format("n_embd {} is no multiple of n_head {}", config.n_embd, config.n_head));
  }
  if (!problems.empty()) fail(ErrorCode::usage, "model sizes: {}", fmt::join(problems, "; "));
}

}  // namespace dstrain::model
