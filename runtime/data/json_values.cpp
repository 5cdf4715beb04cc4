#include "runtime/data/json_values.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/data/line_reader.h"

namespace dstrain::data {

using nlohmann::json;

std::size_t value_size(std::string_view text) {
  constexpr std::size_t looked_at_max = std::size_t{64} << 20;
  constexpr int depth_max = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < std::min(text.size(), looked_at_max); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > depth_max) return 0;
    if (depth <= 0) return at + 1;
  }
  return 0;
}

std::optional<json> parse_value(std::string_view text) {
  try {
    return parse_python_json(
        text, [](std::string_view whole) { return json::parse(whole.begin(), whole.end()); });
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::optional<json> first_value(std::string_view text) {
  const std::size_t size = value_size(text);
  return size == 0 ? std::nullopt : parse_value(text.substr(0, size));
}

std::string_view next_value(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n,"), text.size()));
}

bool goes_on_with_records(std::string_view text) {
  constexpr int looked_at = 16;
  std::string_view rest = next_value(text.substr(value_size(text)));
  for (int i = 0; i < looked_at && (rest.starts_with('{') || rest.starts_with('[')); ++i) {
    const std::size_t size = value_size(rest);
    if (size == 0 || !parse_value(rest.substr(0, size))) break;
    rest = next_value(rest.substr(size));
    if (i + 1 == looked_at) return true;
  }
  if (rest.empty() || rest.starts_with(']')) return true;
  int records = 0;
  int others = 0;
  LineReader lines(rest);
  for (const Line& line : lines.next()) {
    const std::string_view begin = next_value(line.text);
    ++(begin.starts_with("{\"") ? records : others);
    if (records + others == looked_at) break;
  }
  return records > others;
}

std::string_view behind_value(std::string_view text) {
  const std::size_t size = value_size(text);
  if (size == 0) return {};
  text.remove_prefix(size);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

bool has_text(const json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_string();
}

bool has_list(const json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_array() && !field->empty();
}

}  // namespace dstrain::data
