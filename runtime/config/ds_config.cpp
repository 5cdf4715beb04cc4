#include "runtime/config/ds_config.h"

#include "runtime/base/file.h"
#include "runtime/config/json_reader.h"
#include "runtime/config/schema_check.h"

namespace dstrain::config {

DsConfig DsConfig::parse(std::string text, const std::string& file) {
  Problems problems(file);
  const JsonValue root = read_json(text, problems);
  DsConfig config;
  config.values_ = check_against_schema(root, problems);
  problems.throw_if_any();
  config.file_ = file;
  config.text_ = std::move(text);
  config.warnings_ = problems.warnings();
  return config;
}

DsConfig DsConfig::load(const std::filesystem::path& path) {
  return parse(read_text_file(path, json_bytes_max), path.string());
}

const JsonValue* DsConfig::find(std::string_view path) const {
  const auto found = values_.find(path);
  return found == values_.end() ? nullptr : &found->second;
}

bool DsConfig::is_auto(std::string_view path) const {
  const JsonValue* const value = find(path);
  return value != nullptr && value->is_text("auto");
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

Position DsConfig::position(std::string_view path) const {
  const JsonValue* const value = find(path);
  return value == nullptr ? Position{} : value->position;
}

}  // namespace dstrain::config
