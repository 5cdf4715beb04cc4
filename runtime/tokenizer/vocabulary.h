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

/// The tokens of a model and their ids, both ways. Immutable but for `add`; move-only.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  ~Vocabulary() = default;
  /// Throws Error{input}, which begins with `place`, when two tokens have one id, or when most ids
  /// up to the largest have none.
  Vocabulary(std::vector<VocabularyEntry> entries, const std::string& place);
  /// Two tokens may not be the same, nor two ids. Throws Error{input}.
  void add(VocabularyEntry entry, const std::string& place);

  [[nodiscard]] std::optional<std::int32_t> id(std::string_view token) const;
  /// The token of an id, or null where it has none.
  [[nodiscard]] const std::string* token(std::int32_t id) const;
  /// The number of tokens.
  [[nodiscard]] std::size_t count() const { return id_of_.size(); }
  /// The largest id, plus one.
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

 private:
  TextMap<std::int32_t> id_of_;
  /// By id, into the map's keys, which stay where they are.
  std::vector<const std::string*> tokens_;
};

}  // namespace dstrain::tokenizer
