#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/config/ds_config.h"
#include "runtime/config/schema.h"
#include "tests/config/support.h"

namespace dstrain::test {

/// {"a": {"b": VALUE}} for "a.b".
inline std::string nested(std::string_view path, const std::string& value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return fmt::format("{{\"{}\": {}}}", path, value);
  return fmt::format("{{\"{}\": {}}}", path.substr(0, dot), nested(path.substr(dot + 1), value));
}

/// A value of the key's type that leaves everything as it is.
inline std::string harmless(const config::Key& key) {
  const auto quoted = [](std::string_view text) {
    return fmt::format("\"{}\"", text);
  };
  const bool bare_null = key.fallback == "null";
  if (bare_null && key.status == config::KeyStatus::hint) {  // null would be the same as nothing
    return key.type == config::KeyType::text      ? "\"x\""
           : key.type == config::KeyType::boolean ? "true"
                                                  : "1";
  }
  switch (key.type) {
    case config::KeyType::section:
      return key.status == config::KeyStatus::off_only ? "null" : "{}";
    case config::KeyType::boolean:
      return key.fallback.empty() ? "false" : std::string(key.fallback);
    case config::KeyType::integer:
    case config::KeyType::number:
      return key.fallback.empty() ? "1" : std::string(key.fallback);
    case config::KeyType::text:
      return bare_null ? "null" : quoted(key.fallback.empty() ? "x" : key.fallback);
    case config::KeyType::list:
      return key.fallback.empty() || bare_null ? "[]" : std::string(key.fallback);
    case config::KeyType::any:
      return key.off.empty() ? "1" : "null";
  }
  return {};
}

/// A value of the key's type that turns its feature on.
inline std::string enabling(const config::Key& key) {
  if (key.type == config::KeyType::section) return "{}";
  if (key.type == config::KeyType::boolean) return key.off.starts_with("true") ? "false" : "true";
  if (key.type != config::KeyType::text) return "7";
  const auto off = config::split_choices(key.off);
  for (const std::string_view choice : config::split_choices(key.choices)) {
    if (std::find(off.begin(), off.end(), choice) == off.end())
      return fmt::format("\"{}\"", choice);
  }
  return "\"no such choice\"";
}

inline std::string outcome(const std::string& text) {
  return message_of([&] {
    const config::DsConfig config = config::DsConfig::parse(text, "f");
    config.problems().throw_if_any();
    if (!config.warnings().empty()) {
      fail(ErrorCode::config, "warning {}", config.warnings().back());
    }
  });
}

inline bool needs_a_type(std::string_view path) {
  return path.starts_with("optimizer") || path.starts_with("scheduler");
}

}  // namespace dstrain::test
