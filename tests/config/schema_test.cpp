#include "runtime/config/schema.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "runtime/config/native_types.h"
#include "tests/config/schema_values.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::contains;
using dstrain::test::enabling;
using dstrain::test::harmless;
using dstrain::test::needs_a_type;
using dstrain::test::nested;
using dstrain::test::outcome;

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

TEST_CASE("Schema: every parameter of a type is a key and every such key has a type",
          "[config][schema]") {
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
