#include "runtime/config/schema.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "runtime/config/ds_config.h"
#include "runtime/config/native_types.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::contains;
using dstrain::test::message_of;

namespace {

/// {"a": {"b": VALUE}} for "a.b".
std::string nested(std::string_view path, const std::string& value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return fmt::format("{{\"{}\": {}}}", path, value);
  return fmt::format("{{\"{}\": {}}}", path.substr(0, dot), nested(path.substr(dot + 1), value));
}

/// A value of the key's type that leaves everything as it is.
std::string harmless(const Key& key) {
  const auto quoted = [](std::string_view text) {
    return fmt::format("\"{}\"", text);
  };
  const bool bare_null = key.fallback == "null";
  if (bare_null && key.status == KeyStatus::hint) {  // null would be the same as nothing
    return key.type == KeyType::text ? "\"x\"" : key.type == KeyType::boolean ? "true" : "1";
  }
  switch (key.type) {
    case KeyType::section:
      return key.status == KeyStatus::off_only ? "null" : "{}";
    case KeyType::boolean:
      return key.fallback.empty() ? "false" : std::string(key.fallback);
    case KeyType::integer:
    case KeyType::number:
      return key.fallback.empty() ? "1" : std::string(key.fallback);
    case KeyType::text:
      return bare_null ? "null" : quoted(key.fallback.empty() ? "x" : key.fallback);
    case KeyType::list:
      return key.fallback.empty() || bare_null ? "[]" : std::string(key.fallback);
    case KeyType::any:
      return key.off.empty() ? "1" : "null";
  }
  return {};
}

/// A value of the key's type that turns its feature on.
std::string enabling(const Key& key) {
  if (key.type == KeyType::section) return "{}";
  if (key.type == KeyType::boolean) return key.off.starts_with("true") ? "false" : "true";
  if (key.type != KeyType::text) return "7";
  const auto off = split_choices(key.off);
  for (const std::string_view choice : split_choices(key.choices)) {
    if (std::find(off.begin(), off.end(), choice) == off.end())
      return fmt::format("\"{}\"", choice);
  }
  return "\"no such choice\"";
}

std::string outcome(const std::string& text) {
  return message_of([&] {
    const DsConfig config = DsConfig::parse(text, "f");
    config.problems().throw_if_any();
    if (!config.warnings().empty()) {
      dstrain::fail(dstrain::ErrorCode::config, "warning {}", config.warnings().back());
    }
  });
}

bool needs_a_type(std::string_view path) {
  return path.starts_with("optimizer") || path.starts_with("scheduler");
}

}  // namespace

TEST_CASE("Schema: every key is reachable and does what its status says", "[config][schema]") {
  for (const Key& key : all_keys()) {
    if (needs_a_type(key.path)) continue;
    CAPTURE(key.path);
    const bool silent = key.status == KeyStatus::hint && !key.off.empty();
    if (silent) CHECK(outcome(nested(key.path, harmless(key))) == "no error");
    const std::string told = outcome(nested(key.path, silent ? enabling(key) : harmless(key)));
    CAPTURE(told);
    const std::string path(key.path);
    switch (key.status) {
      case KeyStatus::hint:
      case KeyStatus::unread:
        CHECK(contains(told, "warning f:1:"));
        CHECK(contains(told, path + ": has no effect: "));
        CHECK_FALSE(key.note.empty());
        break;
      case KeyStatus::refused:
        CHECK(contains(told, path + ": " + std::string(key.note)));
        break;
      case KeyStatus::off_only:
        CHECK((told == "no error" || contains(told, "warning")));
        CHECK_FALSE(key.note.empty());
        CHECK_FALSE(key.off.empty());
        break;
      case KeyStatus::implemented:
      case KeyStatus::inert:
        CHECK_FALSE(contains(told, "unknown"));
        CHECK_FALSE(contains(told, "expected"));
        break;
    }
  }
}

TEST_CASE("Schema: a value that turns a feature on is refused", "[config][schema]") {
  for (const Key& key : all_keys()) {
    if (key.status != KeyStatus::off_only || needs_a_type(key.path)) continue;
    CAPTURE(key.path);
    const std::string told = outcome(nested(key.path, enabling(key)));
    CAPTURE(told);
    CHECK(contains(told, fmt::format("{} is not implemented", key.note)));
  }
}

TEST_CASE("Schema: parameters of types are all known and all owned", "[config][schema]") {
  const struct {
    std::string_view section;
    std::span<const NativeType> types;
  } families[] = {{"optimizer", optimizer_types()}, {"scheduler", scheduler_types()}};
  for (const auto& [section, types] : families) {
    std::set<std::string_view> owned;
    for (const NativeType& type : types) {
      for (const std::string_view param : split_choices(type.params)) {
        CAPTURE(section, type.name, param);
        owned.insert(param);
        const Key* const key = find_key(fmt::format("{}.params.{}", section, param));
        REQUIRE(key != nullptr);
        std::string params = fmt::format(R"("{}": {})", param, harmless(*key));
        for (const std::string_view other : split_choices(type.required)) {
          if (other != param) params += fmt::format(R"(, "{}": 1)", other);
        }
        const std::string text = fmt::format(R"({{"{}": {{"type": "{}", "params": {{{}}}}}}})",
                                             section, type.name, params);
        CHECK(contains(outcome(text), type.built ? "no error" : "is not implemented"));
      }
    }
    for (const Key& key : all_keys()) {
      const std::string prefix = fmt::format("{}.params.", section);
      if (!key.path.starts_with(prefix) || key.status == KeyStatus::unread) continue;
      if (key.status == KeyStatus::refused) continue;
      CAPTURE(key.path);
      CHECK(owned.count(key.path.substr(prefix.size())) == 1);
    }
  }
}

TEST_CASE("Schema: paths are unique and their sections exist", "[config][schema]") {
  std::set<std::string_view> paths;
  for (const Key& key : all_keys()) {
    CAPTURE(key.path);
    CHECK(paths.insert(key.path).second);
    const std::size_t dot = key.path.rfind('.');
    if (dot == std::string_view::npos) continue;
    const Key* const parent = find_key(key.path.substr(0, dot));
    REQUIRE(parent != nullptr);
    CHECK(parent->type == KeyType::section);
  }
  for (const Alias& alias : aliases()) {
    CAPTURE(alias.path);
    CHECK(find_key(alias.canonical) != nullptr);
    CHECK(find_key(alias.path) == nullptr);
  }
  for (const Replaced& pair : replacements()) {
    CHECK(find_key(pair.deprecated) != nullptr);
    CHECK(find_key(pair.by) != nullptr);
  }
}

TEST_CASE("Schema: every key of DeepSpeed is known", "[config][schema]") {
  std::ifstream names(DSTRAIN_SOURCE_DIR "/tests/config/deepspeed_keys.txt");  // 0.19.6 to 0.19.8
  int count = 0;
  for (std::string name; std::getline(names, name); ++count) {
    CAPTURE(name);
    const Alias* const alias = find_alias(name);
    CHECK(find_key(alias == nullptr ? std::string_view(name) : alias->canonical) != nullptr);
  }
  CHECK(count > 250);
}
