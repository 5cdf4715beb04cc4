#include "runtime/config/choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/config/native_types.h"

namespace dstrain::config {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return lower_case(a) == lower_case(b);
}

std::vector<std::string_view> type_names(std::span<const NativeType> types) {
  std::vector<std::string_view> names;
  for (const NativeType& type : types) names.push_back(type.name);
  return names;
}

/// Another word that DeepSpeed accepts for a choice: "float32:fp32".
struct Synonym {
  std::string_view word;
  std::string_view choice;
};

std::vector<Synonym> synonyms_of(const Key& key) {
  std::vector<Synonym> synonyms;
  for (const std::string_view pair : split_choices(key.synonyms)) {
    const std::size_t colon = pair.find(':');
    synonyms.push_back({pair.substr(0, colon), pair.substr(colon + 1)});
  }
  return synonyms;
}

bool known_to_deepspeed(const Key& key, std::string_view word) {
  if (key.any_case) return true;
  const std::vector<Synonym> synonyms = synonyms_of(key);
  return std::any_of(synonyms.begin(), synonyms.end(),
                     [&](const Synonym& synonym) { return synonym.word == word; });
}

}  // namespace

std::string_view spelled_word(std::string_view word, std::span<const std::string_view> words) {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](std::string_view known) { return same_word(word, known); });
  return found == words.end() ? std::string_view{} : *found;
}

std::vector<std::string_view> words_of(const Key& key) {
  if (key.path == "optimizer.type") return type_names(optimizer_types());
  if (key.path == "scheduler.type") return type_names(scheduler_types());
  return split_choices(key.choices);
}

std::string_view canonical_word(const Key& key, std::string_view word) {
  const std::vector<std::string_view> words = words_of(key);
  if (words.empty() && key.type == KeyType::text) return {};  // a name or a path
  const std::string_view known = spelled_word(word, words);
  if (!known.empty()) return known;
  for (const Synonym& synonym : synonyms_of(key)) {
    if (same_word(word, synonym.word)) return synonym.choice;
  }
  return same_word(word, "auto") ? "auto" : std::string_view{};
}

void resolve_word(const Key& key, JsonValue& value, const std::string& path, Problems& problems) {
  if (!value.is(JsonValue::Kind::string)) return;
  const std::string_view word = canonical_word(key, value.text);
  if (word.empty() || word == value.text) return;
  if (!known_to_deepspeed(key, value.text)) {
    problems.warn(value.position, path,
                  fmt::format("{} is read as \"{}\"; DeepSpeed does not know this spelling",
                              to_text(value), word));
  }
  value.text = word;
}

}  // namespace dstrain::config
