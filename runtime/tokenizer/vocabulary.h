#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/text_map.h"

namespace dstrain::tokenizer {

struct VocabularyEntry {
  std::string token;
  std::int32_t id = 0;
};

/// Maps the tokens of a model to ids and back. Immutable except for `add`; move-only.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  ~Vocabulary() = default;
  /// Throws Error{input}, which begins with `place`, if two tokens have the same id or most ids up
  /// to the largest are unused.
  Vocabulary(std::vector<VocabularyEntry> entries, const std::string& place);
  /// Adds a token. Its text and its id must be new. Throws Error{input}.
  void add(VocabularyEntry entry, const std::string& place);

  [[nodiscard]] std::optional<std::int32_t> id(std::string_view token) const;
  /// Returns the token of an id; null if it has none.
  [[nodiscard]] const std::string* token(std::int32_t id) const;
  /// Returns the number of tokens.
  [[nodiscard]] std::size_t count() const { return id_of_.size(); }
  /// Returns the largest id plus one.
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

 private:
  TextMap<std::int32_t> id_of_;
  /// Indexed by id; points to keys of the map, which do not move.
  std::vector<const std::string*> tokens_;
};

}  // namespace dstrain::tokenizer
