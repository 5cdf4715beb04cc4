#include "runtime/config/ds_config.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"
#include "runtime/config/foreign_remedies.h"
#include "runtime/config/json_reader.h"
#include "runtime/config/schema_check.h"
#include "runtime/os/file.h"

namespace dstrain::config {
namespace {

/// Refuses YAML files: those of accelerate, LLaMA-Factory and axolotl, and DeepSpeed's keys in
/// YAML. They begin with "key: value".
void refuse_yaml(std::string_view text, const std::string& file) {
  std::size_t first = text.find_first_not_of(" \t\r\n");
  while (first < text.size() && text[first] == '#') {
    first = text.find_first_not_of(" \t\r\n", text.find('\n', first));
  }
  if (first == text.npos) return;
  const std::string_view line = text.substr(first, text.find('\n', first) - first);
  const std::size_t key = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  const bool yaml = line.starts_with("---") || (key > 0 && key < line.size() && line[key] == ':');
  if (!yaml) return;
  const auto has = [&](std::string_view name) {
    return text.starts_with(name) || text.find(fmt::format("\n{}", name)) != text.npos;
  };
  const bool own = has("zero_optimization:") || has("train_batch_size:") ||
                   has("train_micro_batch_size_per_gpu:");
  const bool accelerate =
      has("compute_environment:") || has("distributed_type:") || has("num_processes:");
  const std::filesystem::path path(file);
  std::string remedy =
      fmt::format("Options of train in YAML are a file for --config: --config {}", file);
  if (accelerate) remedy = accelerate_yaml;
  if (own) {
    remedy = "Convert it" +
             command_below(fmt::format(
                 "python3 -c \"import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), "
                 "sys.stdout)\" < {} > {}",
                 shell_path(file),
                 shell_path((path.parent_path() / path.stem()).string() + "-converted.json")));
  }
  fail(ErrorCode::config, "{}: is YAML; the configuration is DeepSpeed's JSON. {}", file, remedy);
}

/// Refuses UTF-16, which PowerShell writes.
void refuse_wide(std::string_view text, const std::string& file) {
  if (!text.starts_with("\xff\xfe") && !text.starts_with("\xfe\xff")) return;
  const std::filesystem::path path(file);
  fail(ErrorCode::config, "{}: is UTF-16; make it UTF-8{}", file,
       command_below(
           fmt::format("iconv -f UTF-16 -t UTF-8 {} > {}", shell_path(file),
                       shell_path((path.parent_path() / path.stem()).string() + "-utf8.json"))));
}

/// Refuses JSON files of other programs, which have none of DeepSpeed's keys.
void refuse_other_programs(const JsonValue& root, const std::string& file) {
  const auto has = [&](std::string_view key) {
    return std::ranges::find(root.members, key, &JsonMember::key) != root.members.end();
  };
  if (has("compute_environment") || has("distributed_type")) {
    fail(ErrorCode::config, "{}: is accelerate's configuration, not DeepSpeed's; {}", file,
         accelerate_options);
  }
  if (has("model_type") && has("architectures")) {
    fail(ErrorCode::config,
         "{}: is the configuration of a model, not DeepSpeed's; give its directory as train "
         "--config_name, or with its weights as --model_name_or_path",
         file);
  }
  if (has("peft_type")) {
    fail(ErrorCode::config,
         "{}: is the configuration of an adapter, not DeepSpeed's; LoRA is not implemented", file);
  }
}

/// Whether a key says in which type and where the weights of a model are.
bool is_for_inference(std::string_view path) {
  const auto is_within = [&](std::string_view section) {
    return path.starts_with(section) &&
           (path.size() == section.size() || path[section.size()] == '.');
  };
  const bool updates = is_within("zero_optimization.offload_optimizer") ||
                       is_within("zero_optimization.cpu_offload");
  return (is_within("zero_optimization") && !updates) || is_within("aio") || path == "bf16" ||
         path == "bf16.enabled" || path == "fp16" || path == "fp16.enabled";
}

}  // namespace

DsConfig DsConfig::parse(std::string text, const std::string& file) {
  return parse_section(std::move(text), file, {});
}

DsConfig DsConfig::parse_section(std::string text,
                                 const std::string& file,
                                 std::span<const Position> positions) {
  DsConfig config;
  config.problems_ = Problems(file);
  refuse_wide(text, file);
  refuse_yaml(text, file);
  JsonValue root = read_json(text, config.problems_);
  if (!positions.empty()) {
    const std::vector<Position*> moved = positions_of(root);
    for (std::size_t i = 0; i < std::min(moved.size(), positions.size()); ++i) {
      *moved[i] = positions[i];
    }
    config.start_ = root.position;
  }
  refuse_other_programs(root, file);
  CheckedConfig checked = check_against_schema(root, config.problems_);
  config.values_ = std::move(checked.values);
  config.faulty_ = std::move(checked.faulty);
  config.file_ = file;
  config.text_ = std::move(text);
  return config;
}

DsConfig DsConfig::load(const std::filesystem::path& path) {
  return parse(read_text_file(path, json_bytes_max), path.string());
}

void DsConfig::keep_inference() {
  std::set<std::string> dropped;
  std::erase_if(values_, [&](const auto& value) {
    const std::string& path = value.first;
    if (is_for_inference(path)) return false;
    std::size_t end = path.find('.');
    if (end != path.npos && is_for_inference(path.substr(0, end))) end = path.find('.', end + 1);
    dropped.insert(path.substr(0, end));
    return true;
  });
  std::erase_if(faulty_, [](const std::string& path) { return !is_for_inference(path); });
  if (dropped.empty()) return;
  problems_.warn(
      start_, "",
      fmt::format("nothing is trained, so these have no effect: {}", fmt::join(dropped, ", ")));
}

DsConfig DsConfig::of(const TrainOptions& options) {
  DsConfig config = given_to(options);
  if (options.inference) config.keep_inference();
  return config;
}

DsConfig DsConfig::given_to(const TrainOptions& options) {
  const std::string given = ds_config_file(options);
  const Flag<std::string>& flag =
      options.deepspeed_config.typed() ? options.deepspeed_config : options.deepspeed;
  const bool in_file = !options.places.of(flag.typed_as).empty();
  if (is_json_text(given) && in_file) {
    return parse_section(given, options.places.file(), options.places.section());
  }
  if (is_json_text(given)) return parse(given, "--deepspeed");
  return given.empty() ? DsConfig() : load(given);
}

const JsonValue* DsConfig::find(std::string_view path) const {
  const auto found = values_.find(path);
  return found == values_.end() ? nullptr : &found->second;
}

bool DsConfig::is_auto(std::string_view path) const {
  const JsonValue* const value = find(path);
  return value != nullptr && value->is_text("auto");
}

std::vector<std::string> DsConfig::automatic_paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, value] : values_) {
    if (is_auto(path)) paths.push_back(path);
  }
  return paths;
}

std::optional<std::int64_t> DsConfig::integer(std::string_view path) const {
  const JsonValue* const value = find(path);
  return value == nullptr ? std::nullopt : value->integer;
}

std::optional<double> DsConfig::number(std::string_view path) const {
  const JsonValue* const value = find(path);
  if (value == nullptr || !value->is(JsonValue::Kind::number)) return std::nullopt;
  return value->number;
}

std::optional<bool> DsConfig::boolean(std::string_view path) const {
  const JsonValue* const value = find(path);
  if (value == nullptr || !value->is(JsonValue::Kind::boolean)) return std::nullopt;
  return value->boolean;
}

std::optional<std::string> DsConfig::text_of(std::string_view path) const {
  const JsonValue* const value = find(path);
  const bool given = value != nullptr && value->is(JsonValue::Kind::string);
  if (!given || value->is_text("auto")) return std::nullopt;
  return value->text;
}

bool DsConfig::is_faulty(std::string_view path) const {
  if (has(path)) return false;
  for (std::size_t end = path.size(); end != std::string_view::npos; end = path.rfind('.', end)) {
    path = path.substr(0, end);
    if (faulty_.find(path) != faulty_.end()) return true;
  }
  return false;
}

Position DsConfig::position(std::string_view path) const {
  const JsonValue* const value = find(path);
  return value == nullptr ? start_ : value->position;
}

}  // namespace dstrain::config
