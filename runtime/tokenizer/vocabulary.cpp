#include "runtime/tokenizer/vocabulary.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"

namespace dstrain::tokenizer {

Vocabulary::Vocabulary(std::vector<VocabularyEntry> entries, const std::string& place) {
  std::int32_t largest = -1;
  for (const VocabularyEntry& entry : entries) largest = std::max(largest, entry.id);
  // Ids are indices of a table, and a file of a few bytes must not make it large.
  constexpr std::size_t spare_ids = 1024;
  if (largest >= 0 && static_cast<std::size_t>(largest) >= 4 * entries.size() + spare_ids) {
    fail(ErrorCode::input, "{}: the id {} is too large for {} tokens", place, largest,
         entries.size());
  }
  id_of_.reserve(entries.size());
  tokens_.resize(static_cast<std::size_t>(std::int64_t{largest} + 1), nullptr);
  for (VocabularyEntry& entry : entries) add(std::move(entry), place);
}

void Vocabulary::add(VocabularyEntry entry, const std::string& place) {
  const auto slot = static_cast<std::size_t>(entry.id);
  if (slot >= tokens_.size()) tokens_.resize(slot + 1, nullptr);
  if (tokens_[slot] != nullptr) {
    fail(ErrorCode::input, "{}: '{}' and '{}' have the same id {}", place,
         printable(*tokens_[slot]), printable(entry.token), entry.id);
  }
  const auto [place_in_map, is_new] = id_of_.emplace(std::move(entry.token), entry.id);
  if (!is_new) {
    fail(ErrorCode::input, "{}: the token '{}' appears twice", place,
         printable(place_in_map->first));
  }
  tokens_[slot] = &place_in_map->first;
}

std::optional<std::int32_t> Vocabulary::id(std::string_view token) const {
  const auto found = id_of_.find(token);
  if (found == id_of_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::token(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size()) return nullptr;
  return tokens_[static_cast<std::size_t>(id)];
}

}  // namespace dstrain::tokenizer
